//! What stands in the console's place in a binary that was built without it.

/// One plain page: what is missing, and what mends it.
pub(crate) const PAGE: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>toolgate without its console</title>
<h1>This toolgate was built without its console</h1>
<p>The host runs, and everything else of it works: the API under <code>/v1</code>, and the command line
(<code>toolgate pending</code>, <code>approve</code>, <code>deny</code>, <code>answer</code>).</p>
<p>Building the console needs Node.js 20.19 or newer. With it installed, this builds both:</p>
<pre>cargo xtask build</pre>
</html>
";
