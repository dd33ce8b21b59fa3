//! Confines the process that compiles, where the kernel can: Landlock denies it files, TCP connections, signals and abstract
//! sockets of others, and seccomp denies it every system call that compiling does not need. Each of them is enough to stop a
//! compiler that was taken over from opening, starting or signalling anything.
//!
//! Both hold for this thread and for every thread that it starts later, and nothing undoes them.

use std::io;
use std::os::fd::AsFd as _;

use rustix::fs::{FileType, fstat};

use super::Landlock;

/// Closes every descriptor but the three standard ones, and checks that these are pipes. A terminal would be a way out: its
/// reader obeys escape sequences.
pub(super) fn only_pipes() -> io::Result<()> {
    close_others()?;
    let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
    for standard in [input.as_fd(), output.as_fd(), errors.as_fd()] {
        if FileType::from_raw_mode(fstat(standard)?.st_mode) != FileType::Fifo {
            return Err(io::Error::other(
                "standard input, output and error must be pipes: only a host starts this program",
            ));
        }
    }
    Ok(())
}

/// Kernels before 5.9 cannot do it. The filter of system calls allows none of those descriptors.
#[cfg(target_os = "linux")]
fn close_others() -> io::Result<()> {
    #[expect(unsafe_code, reason = "nothing in the process owns descriptors that it inherited")]
    // SAFETY: `compile_child` runs before anything else in this process has opened a file. The call takes numbers only.
    let failed = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } != 0;
    let error = io::Error::last_os_error();
    if failed && error.raw_os_error() != Some(libc::ENOSYS) { Err(error) } else { Ok(()) }
}

#[cfg(not(target_os = "linux"))]
fn close_others() -> io::Result<()> {
    Ok(())
}

/// Denies everything that Landlock knows. Needs a free descriptor.
#[cfg(target_os = "linux")]
pub(super) fn landlock() -> Landlock {
    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetError, RulesetStatus, Scope,
    };

    // Later versions know more rules. The newest of these is in Linux 6.12.
    const KNOWN: ABI = ABI::V6;
    let restrict = || -> Result<_, RulesetError> {
        let rules = Ruleset::default().handle_access(AccessFs::from_all(KNOWN))?;
        let rules = rules.handle_access(AccessNet::from_all(KNOWN))?.scope(Scope::from_all(KNOWN))?;
        rules.create()?.restrict_self()
    };
    match restrict().map(|restricted| restricted.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => Landlock::Full,
        Ok(RulesetStatus::PartiallyEnforced) => Landlock::InPart,
        Ok(RulesetStatus::NotEnforced) | Err(_) => Landlock::Missing,
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn landlock() -> Landlock {
    Landlock::Missing
}

/// Allows only the system calls of a compiler that reads its input and writes its output. Returns whether the kernel does.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn seccomp() -> bool {
    filter::program().is_ok_and(|program| seccompiler::apply_filter(&program).is_ok())
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(super) fn seccomp() -> bool {
    false
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod filter {
    use seccompiler::{
        BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule,
    };

    /// Calls that reach nothing outside of the process with any arguments.
    const HARMLESS: [i64; 20] = [
        libc::SYS_brk,
        libc::SYS_clock_gettime,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_futex,
        libc::SYS_getpid,
        libc::SYS_getrandom,
        libc::SYS_gettid,
        libc::SYS_madvise,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_restart_syscall,
        libc::SYS_rseq,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_yield,
        libc::SYS_set_robust_list,
        libc::SYS_sigaltstack,
    ];

    /// The flags with which the C libraries start a thread. One of them adds a flag that means nothing today.
    const THREAD: libc::c_int = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID;

    /// Every other call fails as if the kernel did not have it. So the C library starts threads with `clone`, whose flags
    /// a filter can read, and not with `clone3`.
    pub(super) fn program() -> Result<BpfProgram, BackendError> {
        let anonymous = masked(3, number(libc::MAP_ANONYMOUS), number(libc::MAP_ANONYMOUS))?;
        let no_code = masked(2, number(libc::PROT_EXEC), 0)?;
        let thread = masked(0, !number(libc::CLONE_DETACHED), number(THREAD))?;
        let rule = |conditions| SeccompRule::new(conditions);
        let output = vec![rule(vec![first(1)?])?, rule(vec![first(2)?])?];
        let bounded = [
            (libc::SYS_clone, vec![rule(vec![thread])?]),
            (libc::SYS_mmap, vec![rule(vec![anonymous, no_code.clone()])?]),
            (libc::SYS_mprotect, vec![rule(vec![no_code])?]),
            (libc::SYS_prctl, vec![rule(vec![first(number(libc::PR_SET_NAME))?])?]),
            (libc::SYS_read, vec![rule(vec![first(0)?])?]),
            // For `abort`.
            (libc::SYS_tgkill, vec![rule(vec![first(std::process::id().into())?])?]),
            (libc::SYS_write, output.clone()),
            (libc::SYS_writev, output),
        ];
        let harmless = HARMLESS.map(|call| (call, Vec::new()));
        let calls = harmless.into_iter().chain(bounded).collect();
        let absent = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
        SeccompFilter::new(calls, absent, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?.try_into()
    }

    /// The first argument, an `int`, is this number.
    fn first(value: u64) -> Result<SeccompCondition, BackendError> {
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
    }

    /// The bits of an argument in a mask have this value.
    fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, BackendError> {
        SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(mask), value)
    }

    fn number(flags: libc::c_int) -> u64 {
        u64::from(flags.unsigned_abs())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
