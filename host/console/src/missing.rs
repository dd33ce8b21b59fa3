//! The page of a binary that was built without the console.

/// Says that the console is missing, and how to build it.
pub(crate) const PAGE: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>toolgate without its console</title>
<h1>This toolgate was built without its console</h1>
<p>The host runs. The API under <code>/v1</code> and the command line (<code>toolgate pending</code>, <code>approve</code>,
<code>deny</code>, <code>answer</code>) work.</p>
<p>To build both, install Node.js (20.19 or a later 20, or 22.12 or newer) and run:</p>
<pre>cargo xtask build</pre>
</html>
";
