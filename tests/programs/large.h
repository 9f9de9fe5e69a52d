/* The functions with large counts: a program compiled with -DLARGE calls MPI_Send_c where its source says MPI_Send. */
#ifndef LARGE_H
#define LARGE_H

typedef MPI_Count COUNT;
typedef MPI_Aint DISPL;
typedef MPI_Count PLACE;

#define MPI_Accumulate MPI_Accumulate_c
#define MPI_Allgather MPI_Allgather_c
#define MPI_Allgather_init MPI_Allgather_init_c
#define MPI_Allgatherv MPI_Allgatherv_c
#define MPI_Allgatherv_init MPI_Allgatherv_init_c
#define MPI_Allreduce MPI_Allreduce_c
#define MPI_Allreduce_init MPI_Allreduce_init_c
#define MPI_Alltoall MPI_Alltoall_c
#define MPI_Alltoall_init MPI_Alltoall_init_c
#define MPI_Alltoallv MPI_Alltoallv_c
#define MPI_Alltoallv_init MPI_Alltoallv_init_c
#define MPI_Alltoallw MPI_Alltoallw_c
#define MPI_Alltoallw_init MPI_Alltoallw_init_c
#define MPI_Bcast MPI_Bcast_c
#define MPI_Bcast_init MPI_Bcast_init_c
#define MPI_Bsend MPI_Bsend_c
#define MPI_Bsend_init MPI_Bsend_init_c
#define MPI_Buffer_attach MPI_Buffer_attach_c
#define MPI_Buffer_detach MPI_Buffer_detach_c
#define MPI_Exscan MPI_Exscan_c
#define MPI_Exscan_init MPI_Exscan_init_c
#define MPI_File_get_type_extent MPI_File_get_type_extent_c
#define MPI_File_iread MPI_File_iread_c
#define MPI_File_iread_all MPI_File_iread_all_c
#define MPI_File_iread_at MPI_File_iread_at_c
#define MPI_File_iread_at_all MPI_File_iread_at_all_c
#define MPI_File_iread_shared MPI_File_iread_shared_c
#define MPI_File_iwrite MPI_File_iwrite_c
#define MPI_File_iwrite_all MPI_File_iwrite_all_c
#define MPI_File_iwrite_at MPI_File_iwrite_at_c
#define MPI_File_iwrite_at_all MPI_File_iwrite_at_all_c
#define MPI_File_iwrite_shared MPI_File_iwrite_shared_c
#define MPI_File_read MPI_File_read_c
#define MPI_File_read_all MPI_File_read_all_c
#define MPI_File_read_all_begin MPI_File_read_all_begin_c
#define MPI_File_read_at MPI_File_read_at_c
#define MPI_File_read_at_all MPI_File_read_at_all_c
#define MPI_File_read_at_all_begin MPI_File_read_at_all_begin_c
#define MPI_File_read_ordered MPI_File_read_ordered_c
#define MPI_File_read_ordered_begin MPI_File_read_ordered_begin_c
#define MPI_File_read_shared MPI_File_read_shared_c
#define MPI_File_write MPI_File_write_c
#define MPI_File_write_all MPI_File_write_all_c
#define MPI_File_write_all_begin MPI_File_write_all_begin_c
#define MPI_File_write_at MPI_File_write_at_c
#define MPI_File_write_at_all MPI_File_write_at_all_c
#define MPI_File_write_at_all_begin MPI_File_write_at_all_begin_c
#define MPI_File_write_ordered MPI_File_write_ordered_c
#define MPI_File_write_ordered_begin MPI_File_write_ordered_begin_c
#define MPI_File_write_shared MPI_File_write_shared_c
#define MPI_Gather MPI_Gather_c
#define MPI_Gather_init MPI_Gather_init_c
#define MPI_Gatherv MPI_Gatherv_c
#define MPI_Gatherv_init MPI_Gatherv_init_c
#define MPI_Get MPI_Get_c
#define MPI_Get_accumulate MPI_Get_accumulate_c
#define MPI_Get_count MPI_Get_count_c
#define MPI_Get_elements MPI_Get_elements_c
#define MPI_Iallgather MPI_Iallgather_c
#define MPI_Iallgatherv MPI_Iallgatherv_c
#define MPI_Iallreduce MPI_Iallreduce_c
#define MPI_Ialltoall MPI_Ialltoall_c
#define MPI_Ialltoallv MPI_Ialltoallv_c
#define MPI_Ialltoallw MPI_Ialltoallw_c
#define MPI_Ibcast MPI_Ibcast_c
#define MPI_Ibsend MPI_Ibsend_c
#define MPI_Iexscan MPI_Iexscan_c
#define MPI_Igather MPI_Igather_c
#define MPI_Igatherv MPI_Igatherv_c
#define MPI_Imrecv MPI_Imrecv_c
#define MPI_Ineighbor_allgather MPI_Ineighbor_allgather_c
#define MPI_Ineighbor_allgatherv MPI_Ineighbor_allgatherv_c
#define MPI_Ineighbor_alltoall MPI_Ineighbor_alltoall_c
#define MPI_Ineighbor_alltoallv MPI_Ineighbor_alltoallv_c
#define MPI_Ineighbor_alltoallw MPI_Ineighbor_alltoallw_c
#define MPI_Irecv MPI_Irecv_c
#define MPI_Ireduce MPI_Ireduce_c
#define MPI_Ireduce_scatter MPI_Ireduce_scatter_c
#define MPI_Ireduce_scatter_block MPI_Ireduce_scatter_block_c
#define MPI_Irsend MPI_Irsend_c
#define MPI_Iscan MPI_Iscan_c
#define MPI_Iscatter MPI_Iscatter_c
#define MPI_Iscatterv MPI_Iscatterv_c
#define MPI_Isend MPI_Isend_c
#define MPI_Isendrecv MPI_Isendrecv_c
#define MPI_Isendrecv_replace MPI_Isendrecv_replace_c
#define MPI_Issend MPI_Issend_c
#define MPI_Mrecv MPI_Mrecv_c
#define MPI_Neighbor_allgather MPI_Neighbor_allgather_c
#define MPI_Neighbor_allgather_init MPI_Neighbor_allgather_init_c
#define MPI_Neighbor_allgatherv MPI_Neighbor_allgatherv_c
#define MPI_Neighbor_allgatherv_init MPI_Neighbor_allgatherv_init_c
#define MPI_Neighbor_alltoall MPI_Neighbor_alltoall_c
#define MPI_Neighbor_alltoall_init MPI_Neighbor_alltoall_init_c
#define MPI_Neighbor_alltoallv MPI_Neighbor_alltoallv_c
#define MPI_Neighbor_alltoallv_init MPI_Neighbor_alltoallv_init_c
#define MPI_Neighbor_alltoallw MPI_Neighbor_alltoallw_c
#define MPI_Neighbor_alltoallw_init MPI_Neighbor_alltoallw_init_c
#define MPI_Op_create MPI_Op_create_c
#define MPI_Pack MPI_Pack_c
#define MPI_Pack_external MPI_Pack_external_c
#define MPI_Pack_external_size MPI_Pack_external_size_c
#define MPI_Pack_size MPI_Pack_size_c
#define MPI_Put MPI_Put_c
#define MPI_Raccumulate MPI_Raccumulate_c
#define MPI_Recv MPI_Recv_c
#define MPI_Recv_init MPI_Recv_init_c
#define MPI_Reduce MPI_Reduce_c
#define MPI_Reduce_init MPI_Reduce_init_c
#define MPI_Reduce_local MPI_Reduce_local_c
#define MPI_Reduce_scatter MPI_Reduce_scatter_c
#define MPI_Reduce_scatter_block MPI_Reduce_scatter_block_c
#define MPI_Reduce_scatter_block_init MPI_Reduce_scatter_block_init_c
#define MPI_Reduce_scatter_init MPI_Reduce_scatter_init_c
#define MPI_Register_datarep MPI_Register_datarep_c
#define MPI_Rget MPI_Rget_c
#define MPI_Rget_accumulate MPI_Rget_accumulate_c
#define MPI_Rput MPI_Rput_c
#define MPI_Rsend MPI_Rsend_c
#define MPI_Rsend_init MPI_Rsend_init_c
#define MPI_Scan MPI_Scan_c
#define MPI_Scan_init MPI_Scan_init_c
#define MPI_Scatter MPI_Scatter_c
#define MPI_Scatter_init MPI_Scatter_init_c
#define MPI_Scatterv MPI_Scatterv_c
#define MPI_Scatterv_init MPI_Scatterv_init_c
#define MPI_Send MPI_Send_c
#define MPI_Send_init MPI_Send_init_c
#define MPI_Sendrecv MPI_Sendrecv_c
#define MPI_Sendrecv_replace MPI_Sendrecv_replace_c
#define MPI_Ssend MPI_Ssend_c
#define MPI_Ssend_init MPI_Ssend_init_c
#define MPI_Type_contiguous MPI_Type_contiguous_c
#define MPI_Type_create_darray MPI_Type_create_darray_c
#define MPI_Type_create_hindexed MPI_Type_create_hindexed_c
#define MPI_Type_create_hindexed_block MPI_Type_create_hindexed_block_c
#define MPI_Type_create_hvector MPI_Type_create_hvector_c
#define MPI_Type_create_indexed_block MPI_Type_create_indexed_block_c
#define MPI_Type_create_resized MPI_Type_create_resized_c
#define MPI_Type_create_struct MPI_Type_create_struct_c
#define MPI_Type_create_subarray MPI_Type_create_subarray_c
#define MPI_Type_get_contents MPI_Type_get_contents_c
#define MPI_Type_get_envelope MPI_Type_get_envelope_c
#define MPI_Type_get_extent MPI_Type_get_extent_c
#define MPI_Type_get_true_extent MPI_Type_get_true_extent_c
#define MPI_Type_indexed MPI_Type_indexed_c
#define MPI_Type_size MPI_Type_size_c
#define MPI_Type_vector MPI_Type_vector_c
#define MPI_Unpack MPI_Unpack_c
#define MPI_Unpack_external MPI_Unpack_external_c
#define MPI_Win_allocate MPI_Win_allocate_c
#define MPI_Win_allocate_shared MPI_Win_allocate_shared_c
#define MPI_Win_create MPI_Win_create_c
#define MPI_Win_shared_query MPI_Win_shared_query_c

/* Whether the call of this name is one of them. */
ORACLE int is_large(const char *call)
{
    static const char *const names =
        " MPI_Accumulate MPI_Allgather MPI_Allgather_init MPI_Allgatherv MPI_Allgatherv_init MPI_Allreduce"
        " MPI_Allreduce_init MPI_Alltoall MPI_Alltoall_init MPI_Alltoallv MPI_Alltoallv_init MPI_Alltoallw"
        " MPI_Alltoallw_init MPI_Bcast MPI_Bcast_init MPI_Bsend MPI_Bsend_init MPI_Buffer_attach"
        " MPI_Buffer_detach MPI_Exscan MPI_Exscan_init MPI_File_get_type_extent MPI_File_iread"
        " MPI_File_iread_all MPI_File_iread_at MPI_File_iread_at_all MPI_File_iread_shared MPI_File_iwrite"
        " MPI_File_iwrite_all MPI_File_iwrite_at MPI_File_iwrite_at_all MPI_File_iwrite_shared MPI_File_read"
        " MPI_File_read_all MPI_File_read_all_begin MPI_File_read_at MPI_File_read_at_all"
        " MPI_File_read_at_all_begin MPI_File_read_ordered MPI_File_read_ordered_begin MPI_File_read_shared"
        " MPI_File_write MPI_File_write_all MPI_File_write_all_begin MPI_File_write_at MPI_File_write_at_all"
        " MPI_File_write_at_all_begin MPI_File_write_ordered MPI_File_write_ordered_begin MPI_File_write_shared"
        " MPI_Gather MPI_Gather_init MPI_Gatherv MPI_Gatherv_init MPI_Get MPI_Get_accumulate MPI_Get_count"
        " MPI_Get_elements MPI_Iallgather MPI_Iallgatherv MPI_Iallreduce MPI_Ialltoall MPI_Ialltoallv"
        " MPI_Ialltoallw MPI_Ibcast MPI_Ibsend MPI_Iexscan MPI_Igather MPI_Igatherv MPI_Imrecv"
        " MPI_Ineighbor_allgather MPI_Ineighbor_allgatherv MPI_Ineighbor_alltoall MPI_Ineighbor_alltoallv"
        " MPI_Ineighbor_alltoallw MPI_Irecv MPI_Ireduce MPI_Ireduce_scatter MPI_Ireduce_scatter_block MPI_Irsend"
        " MPI_Iscan MPI_Iscatter MPI_Iscatterv MPI_Isend MPI_Isendrecv MPI_Isendrecv_replace MPI_Issend"
        " MPI_Mrecv MPI_Neighbor_allgather MPI_Neighbor_allgather_init MPI_Neighbor_allgatherv"
        " MPI_Neighbor_allgatherv_init MPI_Neighbor_alltoall MPI_Neighbor_alltoall_init MPI_Neighbor_alltoallv"
        " MPI_Neighbor_alltoallv_init MPI_Neighbor_alltoallw MPI_Neighbor_alltoallw_init MPI_Op_create MPI_Pack"
        " MPI_Pack_external MPI_Pack_external_size MPI_Pack_size MPI_Put MPI_Raccumulate MPI_Recv MPI_Recv_init"
        " MPI_Reduce MPI_Reduce_init MPI_Reduce_local MPI_Reduce_scatter MPI_Reduce_scatter_block"
        " MPI_Reduce_scatter_block_init MPI_Reduce_scatter_init MPI_Register_datarep MPI_Rget"
        " MPI_Rget_accumulate MPI_Rput MPI_Rsend MPI_Rsend_init MPI_Scan MPI_Scan_init MPI_Scatter"
        " MPI_Scatter_init MPI_Scatterv MPI_Scatterv_init MPI_Send MPI_Send_init MPI_Sendrecv"
        " MPI_Sendrecv_replace MPI_Ssend MPI_Ssend_init MPI_Type_contiguous MPI_Type_create_darray"
        " MPI_Type_create_hindexed MPI_Type_create_hindexed_block MPI_Type_create_hvector"
        " MPI_Type_create_indexed_block MPI_Type_create_resized MPI_Type_create_struct MPI_Type_create_subarray"
        " MPI_Type_get_contents MPI_Type_get_envelope MPI_Type_get_extent MPI_Type_get_true_extent"
        " MPI_Type_indexed MPI_Type_size MPI_Type_vector MPI_Unpack MPI_Unpack_external MPI_Win_allocate"
        " MPI_Win_allocate_shared MPI_Win_create MPI_Win_shared_query ";
    char word[64];
    snprintf(word, sizeof word, " %s ", call);
    return strstr(names, word) != NULL;
}

#endif
