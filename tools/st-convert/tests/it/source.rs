//! Tables that are asked for one by one, beside those of CSV.

use crate::common::Made;
use crate::tables::{Row, csv, number};
use st_cli::options::Steps;
use st_convert::tables::{Cell, EVENTS, Sink, TABLES};
use st_convert::{Input, Selection, Source};

/// Rows of the table of calls.
#[derive(Default)]
struct Calls(Vec<Row>);

impl Sink for Calls {
    fn row(&mut self, table: usize, cells: &[Cell<'_>]) -> anyhow::Result<()> {
        let text = |cell: &Cell<'_>| match cell {
            Cell::None => String::new(),
            Cell::Int(n) => n.to_string(),
            Cell::Text(text) => (*text).to_owned(),
        };
        let columns = TABLES[EVENTS].columns.iter().map(|column| column.name.to_owned());
        self.0.extend((table == EVENTS).then(|| columns.zip(cells.iter().map(text)).collect::<Row>()));
        Ok(())
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    fn commit(self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Thread 1 starts, and waits for, what thread 0 has made.
const STARTS: &str = r#"
{"header":{"world":2,"program":"app"}}
{"rank":0,"call":"MPI_Init","enter":0,"exit":1}
{"rank":0,"call":"MPI_Send_init","comm":"MPI_COMM_WORLD","dest":1,"tag":5,"count":3,"type":"MPI_INT","request":0,"enter":2,"exit":3}
{"rank":0,"thread":1,"call":"MPI_Start","request":0,"enter":4,"exit":5}
{"rank":0,"thread":1,"call":"MPI_Wait","requests":[0],"completed":[{"request":0}],"enter":6,"exit":7}
{"rank":0,"call":"MPI_Finalize","enter":8,"exit":9}
{"rank":1,"call":"MPI_Init","enter":0,"exit":1}
{"rank":1,"call":"MPI_Recv","comm":"MPI_COMM_WORLD","source":0,"tag":5,"count":3,"type":"MPI_INT","rsource":0,"bytes":12,"enter":2,"exit":7}
{"rank":1,"call":"MPI_Finalize","enter":8,"exit":9}
"#;

#[test]
fn calls_have_what_requests_of_other_threads_tell() {
    let made = Made::of_lines(STARTS);
    let mut written = csv(&made.convert(&["-o", "app.csv"]).0, "events");
    written.sort_by_key(|row| ["rank", "thread", "call"].map(|column| number::<u64>(row, column)));
    let input = Input { paths: vec![made.path("app.st")], ..Input::default() };
    let source = Source::open(&input).unwrap();
    let all = source.events(&Selection::default(), &Steps::default(), Calls::default, &|_| Ok(())).unwrap();
    let asked: Vec<Row> = all.into_iter().flat_map(|calls| calls.0).collect();
    assert_eq!(asked, written);
    let start = asked.iter().find(|row| row["function"] == "MPI_Start").unwrap();
    assert_eq!((start["dest"].as_str(), start["tag"].as_str()), ("1", "5"));
}
