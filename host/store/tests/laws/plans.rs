//! The plans of the writer's statements. A plan is made once, so it must be right before a table has rows.

use crate::machine::is_left_out;
use crate::on_server::settings;
use crate::server;
use crate::store::PostgresStore;

/// The sources with the statements. Nothing else shows their plans.
const SOURCES: [&str; 3] = [
    include_str!("../../src/postgres/load.rs"),
    include_str!("../../src/postgres/write/sql.rs"),
    include_str!("../../src/postgres/removal.rs"),
];

/// The session of the writer.
const SESSION: &str = "SET search_path = toolgate; SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan;";

/// The statements with parameters.
fn statements() -> Vec<String> {
    let texts = SOURCES.iter().flat_map(|source| source.split(": &str =").skip(1));
    let statements = texts.map(|text| {
        let lines = text.split('"').nth(1).unwrap().lines().map(|line| line.trim_start().trim_end_matches('\\'));
        lines.collect::<String>()
    });
    statements.filter(|statement| statement.contains('$')).collect()
}

/// The steps of a plan that read a whole table or a whole index, unless the table has one row.
fn whole_reads(plan: &str) -> Vec<&str> {
    let lines: Vec<_> = plan.lines().collect();
    let follows = |at: usize| lines.get(at + 1).is_some_and(|next| next.contains("Index Cond"));
    let is_whole = |(at, line): &(usize, &&str)| {
        let is_step = line.contains(" Scan");
        let is_keyed =
            line.contains("Index") && follows(*at) || line.contains("Bitmap Heap") || line.contains("Tid Scan");
        let is_of_no_table =
            ["Function Scan", "Subquery Scan", "CTE Scan", " on head"].iter().any(|scan| line.contains(scan));
        is_step && !is_keyed && !is_of_no_table
    };
    lines.iter().enumerate().filter(is_whole).map(|(_, line)| line.trim()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_statement_of_a_commit_looks_rows_up_by_key() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    drop(PostgresStore::open(&settings(url)).await.unwrap());
    // The statistics say now that the tables are empty. Without statistics, the server assumes some rows.
    server::run(&name, "VACUUM");
    let statements = statements();
    assert!(statements.len() > 40, "{}", statements.len());
    for statement in statements {
        let count = (1..20).take_while(|number| statement.contains(&format!("${number}"))).count();
        let nothing = vec!["NULL"; count].join(", ");
        let plan = server::run(
            &name,
            &format!("{SESSION} PREPARE written AS {statement}; EXPLAIN EXECUTE written({nothing})"),
        );
        assert_eq!(whole_reads(&plan), [] as [&str; 0], "{statement}\n{plan}");
    }
}
