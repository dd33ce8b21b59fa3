//! Small files that all hosts share.

use std::collections::BTreeMap;

use crate::machine::is_left_out;
use crate::on_server::settings;
use crate::server;
use crate::store::{Documents, PostgresStore};

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_shared_with_programs_that_are_no_host() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    // It makes the tables.
    let of_command = Documents::connect(&settings(url.clone())).await.unwrap();
    assert!(of_command.replace("tokens", None, b"one".to_vec()).await.unwrap());
    let store = PostgresStore::open(&settings(url.clone())).await.unwrap();
    let of_host = store.documents();
    let (version, body) = of_host.read("tokens").await.unwrap().unwrap();
    assert_eq!((body.as_slice(), of_host.read("other").await.unwrap()), (b"one".as_slice(), None));
    assert_eq!(of_host.versions().await.unwrap(), BTreeMap::from([("tokens".to_owned(), version)]));
    // A command works while the host runs.
    let of_command = Documents::connect(&settings(url)).await.unwrap();
    assert!(of_command.replace("tokens", Some(version), b"two".to_vec()).await.unwrap());
    assert!(!of_host.replace("tokens", Some(version), b"three".to_vec()).await.unwrap());
    assert!(!of_host.replace("tokens", None, b"four".to_vec()).await.unwrap());
    assert_eq!(of_host.read("tokens").await.unwrap().unwrap().1, b"two");
    of_host.delete("tokens").await.unwrap();
    assert_eq!(of_command.read("tokens").await.unwrap(), None);
    assert!(of_command.replace("tokens", None, b"five".to_vec()).await.unwrap());
    assert!(of_host.read("tokens").await.unwrap().unwrap().0 > version, "no version is given twice");
    assert!(of_host.replace("large", None, vec![0; (16 << 20) + 1]).await.is_err());
    let time =
        || server::run(&name, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint").parse::<u64>().unwrap();
    let (before, now) = (time(), of_command.now().await.unwrap());
    assert!((before..=time()).contains(&now), "{now}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_replacements_wins() {
    if is_left_out("postgres") {
        return;
    }
    let (_, url) = server::database();
    let settings = settings(url);
    let (one, two) = tokio::join!(Documents::connect(&settings), Documents::connect(&settings));
    let (one, two) = (one.unwrap(), two.unwrap());
    let mut expected = None;
    for round in 0..50_u8 {
        let both = tokio::join!(one.replace("d", expected, vec![1, round]), two.replace("d", expected, vec![2, round]));
        let (by_one, by_two) = (both.0.unwrap(), both.1.unwrap());
        assert!(by_one != by_two, "{round}");
        let (version, body) = one.read("d").await.unwrap().unwrap();
        assert_eq!(body, [if by_one { 1 } else { 2 }, round]);
        expected = Some(version);
    }
}
