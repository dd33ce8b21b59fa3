//! Numbers: clusters points by k-means and reports how far it has come.

use toolgate_sdk::prelude::*;

mod kmeans;

toolgate_sdk::plugin! {
    Tool::server(
        "cluster",
        "Groups points into k clusters (k-means++ and Lloyd's algorithm, several starts) and gives their centres.",
        kmeans::cluster,
    )
    .title("Find clusters")
    .streaming()
    .timeout(std::time::Duration::from_secs(60))
    .read_only()
    .idempotent(),
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_sdk::testing::{check, run};

    #[test]
    fn the_declarations_are_legal() {
        check(&tools()).unwrap();
    }

    #[test]
    fn two_clouds_are_two_clusters_and_progress_reaches_the_end() {
        let points = json!([[0, 0], [0, 2], [2, 0], [2, 2], [10, 10], [10, 12], [12, 10], [12, 12]]);
        let run = run(tools(), "cluster", json!({"points": points, "clusters": 2, "starts": 4}));
        let result = run.result.unwrap();
        let mut centres: Vec<_> = result["centres"].as_array().unwrap().clone();
        centres.sort_by_key(Value::to_string);
        assert_eq!(centres, [json!([1.0, 1.0]), json!([11.0, 11.0])]);
        assert_eq!(result["spread"], 16.0);
        let fractions: Vec<_> = run.updates.iter().filter_map(|update| update.fraction).collect();
        assert!(fractions.is_sorted() && fractions.len() == 4, "{fractions:?}");
        assert_eq!(fractions.last(), Some(&1.0));
    }

    #[test]
    fn the_same_arguments_give_the_same_result() {
        let points: Vec<_> = (0..200).map(|n| [f64::from(n * 7919 % 101), f64::from(n * 104_729 % 97)]).collect();
        let once = || run(tools(), "cluster", json!({"points": points, "clusters": 5})).result.unwrap();
        assert_eq!(once(), once());
    }

    #[test]
    fn meaningless_arguments_are_refused() {
        for (points, clusters) in [(json!([[1, 2], [3]]), 1), (json!([[1.0]]), 2), (json!([[], []]), 1)] {
            let run = run(tools(), "cluster", json!({"points": points, "clusters": clusters}));
            assert!(matches!(run.result, Err(Failure::InvalidArguments(_))), "{points}");
        }
    }
}
