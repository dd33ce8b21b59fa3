//! Several real hosts on one PostgreSQL database that are killed, paused and cut off, and two that answer the same suspensions.
//! `cargo xtask kills --hosts` does it more often.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "hosts/faults.rs"]
mod faults;
#[path = "hosts/named.rs"]
mod named;
#[path = "../../host/store/tests/laws/proxy.rs"]
#[expect(dead_code, reason = "other tests use all of it")]
mod proxy;
#[path = "hosts/races.rs"]
mod races;
#[path = "../../host/store/tests/laws/server.rs"]
mod server;

use toolgate_tests::parts::Part;

#[test]
fn sixty_faults_lose_nothing_and_repeat_nothing() {
    if !Part::Postgres.is_left_out() {
        faults::run(60, 5);
    }
}

#[test]
fn one_of_two_answers_at_two_hosts_wins() {
    if !Part::Postgres.is_left_out() {
        races::run(500);
    }
}
