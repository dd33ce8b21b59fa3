//! The pool is never exceeded, and neither a plugin nor a queue keeps others waiting.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::*;

const LONG: Duration = Duration::from_secs(3600);

fn plugin(name: &str) -> User {
    User::Plugin(PluginName::new(name).expect("a name"))
}

fn policy() -> User {
    User::Policy(Digest::of(b"policy"))
}

/// A pool of which nothing is spare.
fn pool_of(instances: usize, memory: usize) -> Arc<Pool> {
    Pool::new(instances, memory, Arc::<Kept>::default())
}

/// Reservations that are spare.
#[derive(Default)]
struct Kept(Mutex<Vec<Reservation>>);

impl Kept {
    fn all(&self) -> MutexGuard<'_, Vec<Reservation>> {
        self.0.lock().expect("no panic")
    }
}

impl Spare for Kept {
    fn count(&self) -> usize {
        self.all().len()
    }

    fn drop_one(&self) -> bool {
        let spare = self.all().pop();
        spare.is_some()
    }
}

/// A call that has asked for memory.
fn asks(pool: &Arc<Pool>, user: User, memory: usize) -> BoxFuture<'static, Option<Reservation>> {
    let pool = Arc::clone(pool);
    let mut asking = Box::pin(async move { pool.reserve(user, Expected::Known(memory), LONG).await });
    match asking.as_mut().now_or_never() {
        Some(reservation) => Box::pin(std::future::ready(reservation)),
        None => asking,
    }
}

/// The reservation of a call that need not wait any longer.
fn now(asking: &mut BoxFuture<'static, Option<Reservation>>) -> Option<Reservation> {
    asking.now_or_never().flatten()
}

#[tokio::test]
async fn reservations_never_exceed_the_budget() {
    let pool = pool_of(10, 100);
    let ask = |name, memory| now(&mut asks(&pool, plugin(name), memory));
    let first = ask("one", 60).expect("there is room");
    assert!(first.covers(Part::Linear, 50) && first.covers(Part::Linear, 70), "ten bytes beyond its reservation");
    assert!(!first.covers(Part::Linear, 101), "nothing is left for that");
    assert!(first.covers(Part::Linear, 80) && ask("two", 21).is_none());
    let second = ask("two", 20).expect("exactly what is left");
    assert_eq!(pool.state().all, Amount { instances: 2, memory: 100 });
    assert!(!second.covers(Part::Linear, 21) && !first.covers(Part::Linear, 81));
    drop((first, second));
    assert_eq!(pool.state().all, Amount::default());
    assert!(pool.is_idle() && pool.state().users.is_empty());
    assert!(ask("one", 1_000).is_some_and(|whole| whole.covers(Part::Linear, 100) && !whole.covers(Part::Linear, 101)));
}

#[tokio::test]
async fn all_memory_of_a_guest_counts() {
    let pool = pool_of(10, 100);
    let guest = now(&mut asks(&pool, plugin("one"), 40)).expect("there is room");
    assert!(guest.covers(Part::Linear, 20) && guest.covers(Part::Host, 10) && guest.covers(Part::Journal, 10));
    assert_eq!(pool.state().all.memory, 40, "all of it is reserved");
    assert!(guest.covers(Part::Host, 70) && guest.covers(Part::Host, 5), "none of it is given back");
    assert_eq!((pool.state().all.memory, guest.peak()), (100, 90));
    assert!([Part::Linear, Part::Host, Part::Journal].iter().all(|part| !guest.covers(*part, 71)));
    drop(guest);
    assert_eq!(pool.state().all, Amount::default());
}

#[tokio::test]
async fn waiting_call_keeps_neither_instance_nor_memory() {
    let pool = pool_of(2, 100);
    let small = now(&mut asks(&pool, plugin("small"), 10)).expect("there is room");
    let mut large = asks(&pool, plugin("large"), 100);
    assert!(now(&mut large).is_none());
    let other = now(&mut asks(&pool, plugin("other"), 10)).expect("an instance and memory are free");
    drop(small);
    assert!(now(&mut large).is_none());
    drop(other);
    assert!(now(&mut large).is_some());
}

/// The reservations of those among twenty calls that fit. The others leave.
fn fitting(pool: &Arc<Pool>, name: &str, memory: usize) -> Vec<Reservation> {
    (0..20).filter_map(|_| now(&mut asks(pool, plugin(name), memory))).collect()
}

#[tokio::test]
async fn plugin_leaves_a_part_for_others() {
    let pool = pool_of(1_000, 100);
    let of_one = fitting(&pool, "one", 5);
    assert_eq!(of_one.len(), 15, "three quarters");
    assert!(!of_one[0].covers(Part::Linear, 6), "nor does it take more by growing");
    let of_two = fitting(&pool, "two", 5);
    assert_eq!(of_two.len(), 2, "an eighth is left for others");
    assert!(now(&mut asks(&pool, plugin("three"), 5)).is_some());
    drop(of_one);
    assert!(
        of_two[0].covers(Part::Linear, 60) && !of_two[0].covers(Part::Linear, 71),
        "three quarters of what others leave"
    );
    assert_eq!(fitting(&pool_of(8, 100), "one", 0).len(), 6);
}

/// Plugins that always run, and start a call as soon as another one ends, leave room for the first call of one more.
#[tokio::test]
async fn busy_plugins_let_the_first_call_of_another_begin() {
    let pool = pool_of(1_000, 160);
    let mut busy: Vec<_> = (0..6).flat_map(|n| fitting(&pool, &format!("busy-{n}"), 5)).collect();
    let mut first = Box::pin(pool.reserve(plugin("first"), Expected::AtMost(100), LONG));
    let mut rounds = 0;
    let reservation = loop {
        if let Some(reservation) = first.as_mut().now_or_never() {
            break reservation.expect("it has time");
        }
        rounds += 1;
        assert!(rounds < 50, "the first call never begins");
        drop(busy.remove(0));
        busy.extend((0..6).flat_map(|n| fitting(&pool, &format!("busy-{n}"), 5)));
    };
    assert!(busy.len() > 10, "the others go on: {}", busy.len());
    assert!(
        reservation.covers(Part::Linear, 20) && !reservation.covers(Part::Linear, 100),
        "it has an eighth, and not yet all that it may use"
    );
    drop(busy);
    assert!(reservation.covers(Part::Linear, 100));
}

#[tokio::test]
async fn plugin_with_a_queue_does_not_hold_up_others() {
    let pool = pool_of(1_000, 100);
    let mut held: Vec<_> = (0..10).map(|n| asks(&pool, plugin(&format!("held-{n}")), 10)).collect();
    let mut held: Vec<_> = held.iter_mut().filter_map(now).collect();
    assert_eq!(held.len(), 10);
    let mut greedy: Vec<_> = [90, 10, 10, 10].into_iter().map(|bytes| asks(&pool, plugin("greedy"), bytes)).collect();
    let mut many: Vec<_> = (0..3).map(|_| asks(&pool, plugin("many"), 10)).collect();
    let mut one = asks(&pool, plugin("one"), 10);
    held.pop();
    let first = now(&mut many[0]).expect("the call before it needs more than is free");
    held.pop();
    let second = now(&mut one).expect("its plugin has nothing yet");
    assert!(now(&mut many[1]).is_none() && greedy.iter_mut().all(|call| now(call).is_none()));
    drop((held, first, second));
    assert!(now(&mut greedy[0]).is_none(), "other plugins have less");
    assert!(now(&mut many[1]).is_some() && now(&mut many[2]).is_some());
    let large = now(&mut greedy[0]).expect("everything is free");
    assert!(now(&mut greedy[1]).is_none());
    drop(large);
    assert!(now(&mut greedy[1]).is_some());
}

#[tokio::test]
async fn policies_have_a_reserve_and_begin_first() {
    let pool = pool_of(16, 160);
    let all = now(&mut asks(&pool, plugin("one"), 160)).expect("there is no policy yet");
    assert!(all.covers(Part::Linear, 160));
    drop(all);
    pool.keep_for_policies();
    let most = now(&mut asks(&pool, plugin("one"), 160)).expect("it waits for no more than it can get");
    assert_eq!(most.memory().reserved, 140);
    assert!(!most.covers(Part::Linear, 141) && now(&mut asks(&pool, plugin("two"), 1)).is_none());
    let kept = now(&mut asks(&pool, policy(), 1_000)).expect("its part is free");
    assert!(kept.covers(Part::Linear, 20) && !kept.covers(Part::Linear, 21), "it has not more");
    let mut tool = asks(&pool, plugin("two"), 20);
    let mut another = asks(&pool, policy(), 20);
    assert!(now(&mut tool).is_none() && now(&mut another).is_none());
    drop(kept);
    assert!(now(&mut another).is_some() && now(&mut tool).is_none(), "its part stays its own");
    drop(most);
    assert!(now(&mut tool).is_some());
    let mut instances: Vec<_> = (0..16).map(|n| asks(&pool, plugin(&format!("plugin-{n}")), 0)).collect();
    assert_eq!(instances.iter_mut().filter_map(now).collect::<Vec<_>>().len(), 14);
}

#[tokio::test]
async fn call_that_leaves_the_queue_lets_others_pass() {
    let pool = pool_of(10, 100);
    let held = now(&mut asks(&pool, plugin("held"), 60)).expect("there is room");
    let mut large = asks(&pool, plugin("one"), 90);
    let mut small = asks(&pool, plugin("one"), 10);
    assert!(now(&mut large).is_none() && now(&mut small).is_none(), "calls of one plugin keep their order");
    drop(large);
    assert!(now(&mut small).is_some());
    let left = asks(&pool, plugin("one"), 90);
    let mut waits = asks(&pool, plugin("one"), 80);
    let all = pool.state().all;
    drop(held);
    drop(left);
    assert!(now(&mut waits).is_some(), "a reservation that nobody takes returns");
    assert_eq!((all.memory, pool.state().all.memory), (60, 0));
}

#[tokio::test]
async fn call_waits_for_a_limited_time() {
    let pool = pool_of(1, 100);
    let held = now(&mut asks(&pool, plugin("one"), 1)).expect("there is room");
    assert!(pool.reserve(plugin("two"), Expected::Known(1), Duration::ZERO).await.is_none());
    drop(held);
    assert!(pool.state().waiting.is_empty());
}

#[test]
fn a_component_reserves_the_most_that_its_calls_used() {
    let expected = |peak: &Peak, memory| peak.expected(&Limits { memory, host_bytes: 8, ..Limits::default() });
    let peak = Peak::default();
    assert_eq!(expected(&peak, 120), Expected::AtMost(128), "nothing is known");
    peak.record(0);
    assert_eq!(expected(&peak, 120), Expected::Known(0));
    peak.record(20);
    peak.record(10);
    assert_eq!((expected(&peak, 120), expected(&peak, 7)), (Expected::Known(20), Expected::Known(15)));
    assert_eq!(expected(&peak, 120).with_journal(5), Expected::Known(25));
}

#[tokio::test]
async fn spare_reservations_are_given_up_before_anybody_waits() {
    let kept = Arc::<Kept>::default();
    let pool = Pool::new(3, 100, kept.clone());
    let keep = |name| kept.all().push(now(&mut asks(&pool, plugin(name), 30)).expect("there is room"));
    keep("one");
    keep("two");
    assert!(pool.is_idle() && !pool.is_full());
    let first = now(&mut asks(&pool, plugin("three"), 60)).expect("one of them is enough");
    assert!((kept.count(), pool.is_idle()) == (1, false));
    assert!(first.covers(Part::Linear, 100) && kept.count() == 0, "a call that grows needs the other one");
    let mut waits = asks(&pool, plugin("one"), 10);
    assert!(now(&mut waits).is_none() && pool.is_full(), "nothing is spare");
    drop(first);
    assert!(now(&mut waits).is_some() && !pool.is_full());
}

#[tokio::test]
async fn guest_that_waits_gives_back_its_journal() {
    let pool = pool_of(3, 100);
    let guest = now(&mut asks(&pool, plugin("one"), 60)).expect("there is room");
    assert!(guest.covers(Part::Linear, 20) && guest.covers(Part::Host, 10) && guest.covers(Part::Journal, 30));
    let all = || pool.state().all.memory;
    guest.shrink(50, 5);
    assert_eq!((all(), guest.reserved()), (55, 55), "as much as the next run reserves, and the steps");
    guest.shrink(0, 200);
    assert_eq!(all(), 35, "what the guest has used");
    guest.shrink(100, 0);
    assert_eq!(all(), 35, "nothing is taken");
    assert!(guest.covers_next_run(40, 20) && all() == 60, "the next run has as much as in a new instance");
    assert!(!guest.covers_next_run(40, 61) && all() == 60);
    assert!(guest.covers(Part::Linear, 70) && all() == 100);
    drop(guest);
    assert_eq!(all(), 0);
}
