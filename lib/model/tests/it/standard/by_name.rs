//! What names say of functions and their parameters: written down apart from the call table, so that neither can go wrong alone.

use st_model::calls::{Kind, Param, Properties, Row};

/// Functions by kind, without their prefix, the `I` of those that only start, and the `_init` of persistent ones.
const KINDS: [(Kind, &str); 55] = [
    (Kind::Init, "Init Init_thread"),
    (Kind::Finalize, "Finalize"),
    (Kind::Send, "Send Bsend Rsend Psend"),
    (Kind::SyncSend, "Ssend"),
    (Kind::Receive, "Recv Precv"),
    (Kind::SendReceive, "Sendrecv Sendrecv_replace"),
    (Kind::MatchedProbe, "Mprobe"),
    (Kind::MatchedReceive, "Mrecv"),
    (Kind::Restart, "Start Startall"),
    (Kind::Free, "Request_free"),
    (Kind::Complete, "Wait Waitall Waitany Waitsome Test Testall Testany Testsome"),
    (Kind::Barrier, "Barrier"),
    (Kind::Bcast, "Bcast"),
    (Kind::Gather, "Gather Gatherv"),
    (Kind::Scatter, "Scatter Scatterv"),
    (Kind::Allgather, "Allgather Allgatherv"),
    (Kind::Alltoall, "Alltoall Alltoallv Alltoallw"),
    (Kind::Reduce, "Reduce"),
    (Kind::Allreduce, "Allreduce"),
    (Kind::ReduceScatter, "Reduce_scatter Reduce_scatter_block"),
    (Kind::Scan, "Scan"),
    (Kind::Exscan, "Exscan"),
    (Kind::NeighborAllgather, "Neighbor_allgather Neighbor_allgatherv"),
    (Kind::NeighborAlltoall, "Neighbor_alltoall Neighbor_alltoallv Neighbor_alltoallw"),
    (
        Kind::Creation,
        "Comm_create Comm_split Comm_split_type Intercomm_merge \
         Win_allocate Win_allocate_shared Win_create Win_create_dynamic File_open",
    ),
    (Kind::Duplicate, "Comm_dup Comm_dup_with_info Comm_idup Comm_idup_with_info"),
    (Kind::Intercomm, "Intercomm_create"),
    (Kind::GroupCreation, "Comm_create_group Comm_create_from_group Intercomm_create_from_groups"),
    (Kind::Cart, "Cart_create"),
    (Kind::CartSub, "Cart_sub"),
    (Kind::Graph, "Graph_create"),
    (Kind::DistGraph, "Dist_graph_create"),
    (Kind::Adjacent, "Dist_graph_create_adjacent"),
    (Kind::Connect, "Comm_accept Comm_connect Comm_join Comm_spawn Comm_spawn_multiple"),
    (Kind::Parent, "Comm_get_parent"),
    (Kind::CommFree, "Comm_disconnect Comm_free"),
    (Kind::Abort, "Abort"),
    (Kind::Probe, "Probe Iprobe"),
    (Kind::Buffer, "Buffer_attach Comm_attach_buffer Session_attach_buffer"),
    (Kind::WinAttach, "Win_attach"),
    (
        Kind::TypeLookup,
        "Type_match_size Type_get_value_index Type_create_f90_complex Type_create_f90_integer Type_create_f90_real",
    ),
    (Kind::Close, "File_close"),
    (Kind::WinFence, "Win_fence"),
    (Kind::WinPost, "Win_post"),
    (Kind::WinStart, "Win_start"),
    (Kind::WinComplete, "Win_complete"),
    (Kind::WinWait, "Win_wait Win_test"),
    (Kind::WinLock, "Win_lock Win_lock_all"),
    (Kind::WinFree, "Win_free"),
    (Kind::Put, "Accumulate Put Raccumulate Rput"),
    (Kind::Get, "Get Rget"),
    (Kind::GetPut, "Fetch_and_op Get_accumulate Rget_accumulate"),
    (Kind::CompareSwap, "Compare_and_swap"),
    (
        Kind::Read,
        "File_read File_read_all File_read_all_end File_read_at File_read_at_all File_read_at_all_end File_read_ordered \
         File_read_ordered_end File_read_shared",
    ),
    (
        Kind::Write,
        "File_write File_write_all File_write_all_begin File_write_at File_write_at_all File_write_at_all_begin \
         File_write_ordered File_write_ordered_begin File_write_shared",
    ),
];

/// Functions with a property; a star stands for any end.
const FOLD: &str = "Wtick Wtime";
const POLL: &str = "Improbe Iprobe Parrived Request_get_status Request_get_status_all Request_get_status_any Test Testall Testany Testsome Win_test";
const ASKS: &str = "Cart_coords Cart_get Cart_map Cart_rank Cart_shift Comm_rank Dist_graph_neighbors* Graph_map \
    Graph_neighbors* Group_rank Group_translate_ranks";
const FILES: &str = "File_* Register_datarep";
/// It makes an error handler, and needs no file.
const NO_FILE: &str = "File_create_errhandler";
const UNPLAYED: &str = "Abi_* Add_error_* *_flush_buffer *_iflush_buffer Buffer_flush Buffer_iflush *_attach_buffer *_detach_buffer Close_port Comm_accept Comm_agree Comm_connect Comm_create_from_group Comm_failure_* \
    Comm_idup_with_info Comm_join Comm_revoke Comm_shrink Comm_spawn* Delete_error_* Get_hw_resource_info GPU_* Grequest_* \
    Group_from_session_pset Info_create_env Intercomm_create_from_groups Lookup_name Open_port Publish_name Query_*_support Remove_error_* Request_get_status_* \
    Session_* Status_set_* Type_get_contents* Type_get_envelope_c Type_get_value_index Unpublish_name";
/// Kinds that need nobody.
const LOCAL: [Kind; 5] = [Kind::Free, Kind::Buffer, Kind::Parent, Kind::WinAttach, Kind::TypeLookup];
/// Those of no kind that need others all the same. Of those with a kind the ones of [`LOCAL`] need nobody.
const WITH_OTHERS: &str = "Buffer_detach Buffer_*flush *_detach_buffer *flush_buffer Close_port Comm_agree \
    Comm_revoke Comm_set_info Comm_shrink File_delete File_get_position_shared \
    File_get_size File_preallocate File_read_* File_seek* File_set_atomicity File_set_info File_set_size File_set_view \
    File_sync File_write_* Grequest_class_allocate Grequest_start Lookup_name Open_port \
    Pready* Publish_name Session_finalize Unpublish_name Win_flush* Win_set_info Win_unlock*";

fn is_in(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|entry| match entry.split_once('*') {
        Some((begin, end)) => {
            name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end)
        }
        None => name == entry,
    })
}

/// A function's name without its prefix.
fn bare(row: &Row) -> &str {
    let name = row.base();
    name.strip_prefix("MPI_").or_else(|| name.strip_prefix("MPIX_")).unwrap_or(name)
}

/// What a function of this name does.
fn kind(bare: &str) -> Kind {
    let begun = bare.strip_suffix("_init").unwrap_or(bare).replace("File_i", "File_");
    let mut letters = begun.strip_prefix('I').unwrap_or_default().chars();
    let started: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    let found = |name: &str| KINDS.iter().find(|(_, list)| is_in(list, name)).map(|(kind, _)| *kind);
    found(&begun).or_else(|| found(&started)).unwrap_or_default()
}

/// What the row of a function says after its `;`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Said(Kind, Properties);

impl Said {
    /// What it should say.
    pub(crate) fn by_name(row: &Row) -> Self {
        let name = bare(row);
        let kind = kind(name);
        let begins = row.params.iter().any(|p| p.role == "newrequest") && !name.ends_with("_init");
        let properties = Properties {
            poll: is_in(POLL, name),
            fold: is_in(FOLD, name),
            start: begins || kind == Kind::Restart,
            local: kind == Kind::Other && !is_in(WITH_OTHERS, name) || LOCAL.contains(&kind),
            opaque: false,
            unplayed: is_in(UNPLAYED, name),
            asks: is_in(ASKS, name),
            files: is_in(FILES, name) && name != NO_FILE,
        };
        Self(kind, properties)
    }

    /// What it says.
    pub(crate) fn by(row: &Row) -> Self {
        Self(row.kind, row.properties)
    }
}

/// Names of the table for parameters that the standard names otherwise, beside those that follow from its names.
const OTHERWISE: [(&str, &str); 19] = [
    ("n", "count incount length nkeys nneighbors npset_names"),
    ("name", "comm_name win_name type_name pset_name"),
    ("size", "insize outsize"),
    ("port", "port_name"),
    ("service", "service_name"),
    ("rank", "newrank"),
    ("range", "r"),
    ("precision", "p"),
    ("class", "errorclass typeclass"),
    ("text", "string"),
    ("atomic", "flag"),
    ("high", "partition_high"),
    ("low", "partition_low"),
    ("remain", "remain_dims"),
    ("group2", "remote_group"),
    ("outranks", "ranks2"),
    ("leader", "local_leader"),
    ("counts", "num_large_counts"),
    ("maxcounts", "max_large_counts"),
];
const SHORTER: [(&str, &str); 17] = [
    ("array_of_", ""),
    ("_", ""),
    ("datatypes", "types"),
    ("datatype", "type"),
    ("truelb", "lb"),
    ("trueextent", "extent"),
    ("numaddresses", "addresses"),
    ("numintegers", "integers"),
    ("numcounts", "counts"),
    ("numtypes", "types"),
    ("maxneighbors", "max"),
    ("maxindegree", "maxin"),
    ("maxoutdegree", "maxout"),
    ("rankdest", "dest"),
    ("ranksource", "source"),
    ("targetrank", "target"),
    ("ranks1", "ranks"),
];
/// Roles whose name a parameter may have, whatever the standard calls it: there is one of each in a row.
const OF_ROLE: &str = "count counts type types comm group file op newcomm comm2 target size inplace";

/// Whether the table's name of a parameter is the one that the standard has.
pub(crate) fn is_called(param: &Param, standard: &str) -> bool {
    let shorter = SHORTER.iter().fold(standard.to_owned(), |name, (long, short)| name.replace(long, short));
    let by_role = || match param.role.as_str() {
        "tag" | "int" | "ints" => false,
        role => param.name == role && (is_in(OF_ROLE, role) || role.len() >= 5),
    };
    if ["dest", "source", "root"].contains(&param.role.as_str()) {
        return param.name == param.role && param.role == shorter;
    }
    param.role == "_"
        || param.name == shorter
        || by_role()
        || OTHERWISE.iter().any(|(ours, theirs)| param.name == *ours && is_in(theirs, standard))
}
