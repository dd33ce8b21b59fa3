//! One known component: its tools, and its loaded code after the first call.

use std::collections::HashMap;
use std::sync::Arc;

use capabilities::Grants;
use dispatch::ports::{AllowedEffects, KnownTool};
use domain::gate::{self, Phase, RuleEffect};
use domain::{
    Digest, Limits, PluginName, Tool,
    call::{Frozen, Pinned, Wait},
    tool::Executor,
};
use tokio::sync::OnceCell;

use crate::guests::LoadedComponent;
use crate::note::{self, Note};
use crate::permits::Permits;
use crate::schema::Schemas;
use crate::{Access, RegistrySettings};

pub(crate) struct Component {
    pub(crate) plugin: PluginName,
    pub(crate) digest: Digest,
    /// The version of the interface that it was built against. `None` for a component that is not live and only runs
    /// the calls pinned to it.
    pub(crate) built_against: Option<String>,
    /// In the order of their declaration.
    pub(crate) tools: Vec<Arc<KnownTool>>,
    by_name: HashMap<String, Arc<KnownTool>>,
    /// Its access, its requests, and the operator's grants.
    pub(crate) access: Access,
    pub(crate) grants: Arc<Grants>,
    /// Those of its calls that have begun.
    pub(crate) grants_of_begun: Arc<Grants>,
    pub(crate) limits: Limits,
    /// The permits of the plugin's running calls. All components ever loaded under the plugin's name share them.
    pub(crate) permits: Arc<Permits>,
    /// Compiled at the first call, because most plugins are not called soon after a restart.
    pub(crate) loaded: OnceCell<Arc<dyn LoadedComponent>>,
    /// The same for calls that have begun, if the component has lost a grant that it needs to be loaded.
    pub(crate) loaded_for_begun: OnceCell<Arc<dyn LoadedComponent>>,
}

impl Component {
    pub(crate) fn new(
        plugin: &PluginName,
        access: Access,
        digest: Digest,
        tools: Vec<Tool>,
        settings: &RegistrySettings,
        permits: Arc<Permits>,
        loaded: Option<Arc<dyn LoadedComponent>>,
    ) -> Self {
        let limits = settings.limits(plugin);
        let tools: Vec<_> =
            tools.into_iter().map(|tool| Arc::new(live(tool, settings, &limits, &access.effective))).collect();
        let by_name = tools.iter().map(|tool| (tool.tool.name.as_str().to_owned(), tool.clone())).collect();
        let (grants, of_begun) = (Arc::new(access.effective.clone()), access.of_begun());
        Self {
            plugin: plugin.clone(),
            digest,
            built_against: None,
            tools,
            by_name,
            // The same value if it is equal: a kept instance is continued only with the grants that it has.
            grants_of_begun: if of_begun == *grants { grants.clone() } else { Arc::new(of_begun) },
            grants,
            access,
            limits,
            permits,
            loaded: OnceCell::new_with(loaded),
            loaded_for_begun: OnceCell::new(),
        }
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<KnownTool>> {
        self.by_name.get(name)
    }

    pub(crate) fn notes(&self) -> Vec<Note> {
        note::notes(self.tools.iter().map(|tool| &tool.tool), &self.limits)
    }
}

/// A tool as calls use it: its declaration, tightened by the operator's rules and completed by the defaults.
pub(crate) fn live(tool: Tool, settings: &RegistrySettings, limits: &Limits, grants: &Grants) -> KnownTool {
    let effect = settings.effect(&tool.plugin, tool.name.as_str());
    // A denied call never reaches its gate. Gating it too could combine an executor and an approval that no tool may
    // have.
    let approval = if effect == RuleEffect::Ask { effect.tighten(tool.approval) } else { tool.approval };
    let phases = gate::phases(tool.executor, approval).unwrap_or_default();
    let options = &tool.options;
    let wait = Wait {
        expires: options.expires.unwrap_or(settings.default_expires),
        on_expiry: options.on_expiry.clone(),
        choices: options.responses.clone(),
        data_schema: phases.contains(&Phase::Question).then(|| options.response.clone()).flatten(),
        result_schema: (tool.executor == Executor::Client).then(|| options.result.clone()).flatten(),
        editable: options.editable.clone(),
    };
    let pinned = Pinned {
        plugin: tool.plugin.clone(),
        component: tool.component,
        declaration: tool.declaration,
        executor: tool.executor,
        approval,
        streaming: tool.streaming,
        timeout: options.timeout.map_or(limits.time, |timeout| timeout.min(limits.time)),
        recovery: options.recovery,
        durable: options.durable,
        frozen: options.durable.then(|| Frozen::now(limits)),
        wait: (options.durable || phases.iter().any(|phase| phase.suspends())).then(|| wait.clone()),
    };
    let checks = Arc::new(Schemas::of(&tool));
    let allowed = match tool.executor {
        Executor::Server => AllowedEffects { outside: grants.reach_outside(), changes: grants.may_change() },
        // Others carry them out.
        Executor::Human | Executor::Client | Executor::Provider => AllowedEffects::ANY,
    };
    KnownTool { tool, pinned: Arc::new(pinned), wait, effect, allowed, checks }
}
