//! Waiting calls: the memory of each, and whether many of them make an answer or a count slower.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use dispatch::Answer;
use dispatch::ports::Filter;
use domain::{Principal, PrincipalId, principal::Role};

use crate::measure::{Samples, now, say};
use crate::setting;

const ANSWERS: usize = 200;

const COUNTS: usize = 200;

pub(crate) fn waiting() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build()?;
    runtime.block_on(async {
        let host = Arc::new(setting::host().await?);
        submit(&host, 0, 1_000).await?;
        answer(&host, 1_000).await?;
        count(&host, 1_000).await?;
        let before = resident()?;
        submit(&host, 1_000, 100_000).await?;
        let after = resident()?;
        answer(&host, 100_000).await?;
        count(&host, 100_000).await?;
        let each = (after.saturating_sub(before)) as f64 / 99_000.0;
        let kept = host.handle().turns_in_memory();
        say(&format!(
            "  memory of a waiting call, the store's cache included {each:>15.0} bytes ({kept} turns in memory)"
        ));
        anyhow::Ok(())
    })
}

/// Submits gated calls until there are `count`.
async fn submit(host: &Arc<toolgate::Host>, from: usize, to: usize) -> Result<()> {
    const TASKS: usize = 128;
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let host = host.clone();
            tokio::spawn(async move {
                let by = setting::caller()?;
                for n in (from + task..to).step_by(TASKS) {
                    let request = setting::turn(&format!("talk{}", n % 1000), &format!("w{n}"), "gated_echo", false)?;
                    host.handle().submit(&by, request).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// What `GET /v1/pending/counts?mine=true` counts.
async fn count(host: &toolgate::Host, waiting: usize) -> Result<()> {
    let approver = approver()?;
    let mut samples = Samples::default();
    for _ in 0..COUNTS {
        let start = now();
        let open = host.handle().count_open(&approver, Filter::default(), true).await?;
        samples.add(start.elapsed(), 1);
        ensure!(open.complete && open.approvals > 0, "{open:?}");
    }
    samples.say_tail(&format!("a count of an approver's calls while {waiting} wait"));
    Ok(())
}

fn approver() -> Result<Principal> {
    Ok(Principal::new(PrincipalId::new("ann")?, [Role::Approver]))
}

async fn answer(host: &toolgate::Host, waiting: usize) -> Result<()> {
    let approver = approver()?;
    let open = Filter { open: Some(true), ..Filter::default() };
    let items = host.handle().suspensions(&approver, open, None, ANSWERS).await?.items;
    let mut samples = Samples::default();
    for item in items {
        let answer = Answer {
            suspension: item.suspension.id,
            decision: domain::suspension::Decision::Approve,
            data: None,
            arguments: None,
            comment: None,
            expect_digest: Some(item.suspension.digest),
            standing: None,
        };
        let start = now();
        host.handle().resolve(&approver, answer).await?;
        samples.add(start.elapsed(), 1);
    }
    samples.say_tail(&format!("an answer while {waiting} calls wait"));
    Ok(())
}

/// Bytes of this process that are in memory.
pub(crate) fn resident() -> Result<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = statm.split(' ').nth(1).context("statm has two fields")?.parse()?;
    Ok(pages * 4096)
}
