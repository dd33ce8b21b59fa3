//! A value for each plugin that needs it now.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use domain::PluginName;

/// Has one value for each plugin while somebody uses it. The next user after that gets a new one.
pub(crate) struct PerPlugin<T>(Mutex<BTreeMap<PluginName, Weak<T>>>);

impl<T> Default for PerPlugin<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> PerPlugin<T> {
    /// The plugin's value, or a new one.
    pub(crate) fn of(&self, plugin: &PluginName, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = values.get(plugin).and_then(Weak::upgrade) {
            return value;
        }
        let made = make();
        values.retain(|_, value| value.strong_count() > 0);
        values.insert(plugin.clone(), Arc::downgrade(&made));
        made
    }
}
