//! Things that happen to a host before it is killed: its plugins are loaded again, and its disk fills up. A limit on the
//! size of files simulates the full disk, as in `host/store/tests/laws/full_disk.rs`.

use std::process::Command;
use std::time::Duration;

use super::drivers::Record;
use super::{Tally, moment};
use crate::host::Host;
use crate::random::Random;
use crate::{binary, guests};

/// The plugins that are loaded again. Each change of the bytes is another component, which the host must compile.
const PLUGINS: [&str; 2] = ["textkit", "ledger"];

/// The different components of each plugin.
const VARIANTS: u8 = 8;

/// How long the host may go on without a write after its disk is full.
const UNNOTICED: Duration = Duration::from_millis(500);

/// The counts, and the last round in words.
#[derive(Default)]
pub(super) struct Disturbances {
    full: usize,
    last: Vec<&'static str>,
}

impl Disturbances {
    /// Disturbs the host before the next kill. `acknowledged` waits for some acknowledgements. Returns whether the disk is
    /// still full.
    pub(super) fn before(
        &mut self,
        host: &Host,
        record: &Record,
        random: &mut Random,
        acknowledged: impl Fn(),
    ) -> bool {
        self.last.clear();
        if random.once_in(3) {
            self.reload(host, random);
        }
        if !random.once_in(3) {
            return false;
        }
        self.full += 1;
        moment(random, 50_000);
        let refused = record.refused();
        fill(host, random);
        record.wait_for_a_refusal(refused, UNNOTICED);
        if random.once_in(2) {
            self.last.push("killed on a full disk");
            return true;
        }
        self.last.push("full disk, and space again");
        limit(host, None);
        acknowledged();
        false
    }

    fn reload(&mut self, host: &Host, random: &mut Random) {
        let name = *random.pick(&PLUGINS);
        // A custom section with a name of one letter and one byte of content.
        let section = [1, b'v', u8::try_from(random.below(VARIANTS.into())).unwrap_or_default()];
        host.drop_in(name, &binary::with_section(guests::plugin(name), 0, &section));
        self.last.push("reload");
        moment(random, 200_000);
    }

    /// The last round in words.
    pub(super) fn last(&self) -> String {
        if self.last.is_empty() { "undisturbed".to_owned() } else { self.last.join(", ") }
    }

    pub(super) fn count(&self, tally: &mut Tally) {
        tally.full += self.full;
    }
}

/// Fills the disk: files can be written only up to a random part of the database.
pub(super) fn fill(host: &Host, random: &mut Random) {
    limit(host, Some(random.below(size(host))));
}

/// Lets writes beyond this number of bytes fail, in every file.
fn limit(host: &Host, bytes: Option<usize>) {
    let soft = bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
    let words = ["--pid".to_owned(), host.process().to_string(), format!("--fsize={soft}:")];
    let limited = Command::new("prlimit").args(words).status().expect("there is `prlimit`");
    assert!(limited.success(), "the host runs and belongs to this user");
}

/// The size of the database's file.
fn size(host: &Host) -> usize {
    let file = host.data().join("store/sled/db");
    let found = file.metadata().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    usize::try_from(found.len()).unwrap_or(usize::MAX)
}
