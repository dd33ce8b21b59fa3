//! Declarations of tools. A declaration is refused with findings that are safe to print, or it becomes exactly that
//! tool with a verbatim schema.

use domain::tool::{Approval, Executor};
use registry::fuzzing::decide;
use sandbox::Declared;

/// Reads executor, approval and streaming from the first byte, then name, description, parameters and options,
/// separated by zeros.
pub fn options(bytes: &[u8]) {
    let Some((cell, texts)) = bytes.split_first() else { return };
    let mut texts = texts.splitn(4, |byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    let mut next = || texts.next().unwrap_or_default();
    let declared = Declared {
        name: next(),
        description: next(),
        parameters: next(),
        options: next(),
        executor: [Executor::Server, Executor::Client, Executor::Human, Executor::Provider][usize::from(cell & 3)],
        approval: if cell & 4 == 0 { Approval::Auto } else { Approval::RequiresApproval },
        streaming: cell & 8 != 0,
    };
    let (findings, tools) = decide(std::slice::from_ref(&declared));
    for finding in &findings {
        crate::assert_harmless(&finding.to_string());
    }
    if findings.is_empty() {
        let [tool] = tools.as_slice() else { panic!("one declaration became {} tools", tools.len()) };
        assert_eq!((tool.name.as_str(), &tool.description), (declared.name.as_str(), &declared.description));
        assert_eq!(tool.parameters.as_str(), declared.parameters, "a schema is passed on verbatim");
        assert_eq!((tool.executor, tool.approval), (declared.executor, declared.approval));
        assert!(domain::gate::phases(tool.executor, tool.approval).is_ok(), "the cell is legal");
    }
}
