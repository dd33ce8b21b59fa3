//! The floor of a call: bare wasmtime with the host's own engine configuration, a fresh store and instance for each call,
//! and the same limits on both. No gate, no schema, no turn.

use anyhow::Result;
use domain::{Limits, Span};
use sandbox::{ComponentParts, engine_config};
use wasmtime::component::{Component, HasSelf, Linker, ResourceTable};
use wasmtime::{Engine, Store, StoreLimits, StoreLimitsBuilder, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use self::bindings::exports::toolgate::plugin::server::Call;
use self::bindings::toolgate::plugin::host::{self, Level, Update};
use self::bindings::toolgate::plugin::tool_types;
use self::bindings::{Plugin, PluginPre};

mod bindings {
    #![allow(missing_docs, unreachable_pub, dead_code, reason = "generated from the interface")]

    wasmtime::component::bindgen!({
        path: "../wit/v0.1",
        world: "plugin",
        exports: { default: async },
    });
}

/// A component that is ready to be instantiated.
pub(crate) struct Bare {
    engine: Engine,
    pre: PluginPre<State>,
}

struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    limits: StoreLimits,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl host::Host for State {
    fn progress(&mut self, _: Update) {}

    fn log(&mut self, _: Level, _: String) {}

    fn stop_requested(&mut self) -> bool {
        false
    }
}

impl tool_types::Host for State {}

impl Bare {
    /// Compiles a component.
    pub(crate) fn new(bytes: &[u8]) -> Result<Self> {
        let engine = Engine::new(&engine_config(64, ComponentParts::default())).map_err(engine_error)?;
        let component = Component::new(&engine, bytes).map_err(engine_error)?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).map_err(engine_error)?;
        Plugin::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state).map_err(engine_error)?;
        let pre = linker.instantiate_pre(&component).and_then(PluginPre::new).map_err(engine_error)?;
        Ok(Self { engine, pre })
    }

    /// One call in an instance of its own.
    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> Result<String> {
        let limits = Limits::default();
        let state = State {
            wasi: WasiCtxBuilder::new().build(),
            table: ResourceTable::new(),
            limits: StoreLimitsBuilder::new()
                .memory_size(limits.memory)
                .instances(limits.instances)
                .table_elements(limits.table_elements)
                .build(),
        };
        let mut instance_store = Store::new(&self.engine, state);
        instance_store.limiter(|state| &mut state.limits);
        instance_store.set_hostcall_fuel(limits.hostcall_bytes);
        instance_store.set_epoch_deadline(1);
        instance_store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Yield(1)));
        let call = Call {
            id: "call_1".into(),
            tool: tool.into(),
            arguments: arguments.into(),
            idempotency_key: "0123456789abcdef0123456789abcdef".into(),
            attempt: 1,
            scope: "{}".into(),
        };
        let work = async {
            let plugin = self.pre.instantiate_async(&mut instance_store).await?;
            plugin.toolgate_plugin_server().call_run(&mut instance_store, &call).await
        };
        let time = std::time::Duration::from_millis(Span::from_secs(30).millis());
        let answer = tokio::time::timeout(time, work).await?.map_err(engine_error)?;
        answer.map_err(|failure| anyhow::anyhow!("{failure:?}"))
    }
}

fn engine_error(error: wasmtime::Error) -> anyhow::Error {
    anyhow::anyhow!("{error:#}")
}
