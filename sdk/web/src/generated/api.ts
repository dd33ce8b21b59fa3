// Generated from openapi.json by scripts/generate.mjs. Do not edit.

export interface paths {
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Says that the server answers
         * @description Needs no token, and says nothing of what the host does.
         */
        get: operations["read_health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Counts, in the text form of Prometheus
         * @description For admins: how much is called, and when, is not everybody's business. A scraper sends the token as any client does.
         */
        get: operations["read_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document */
        get: operations["read_openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Reads the audit
         * @description A page may be empty and still have a next one, where few entries match.
         */
        get: operations["read_audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit/chain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Reads the chain of the audit
         * @description With each commit's hash as it was stored and the digest that its record has now: whoever reads it from the beginning can
         *     work every hash out anew, as `toolgate audit verify` does.
         */
        get: operations["read_audit_chain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conversations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists conversations
         * @description Those that this principal may see, in the order of their ids. A page may be empty and still have a next one.
         */
        get: operations["list_conversations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conversations/{conversation}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follows a conversation
         * @description What was committed is told with an `id`, and a stream that comes back with it as `last-event-id` goes on exactly there.
         *     `call.progress`, `call.log` and the events of ephemeral turns are live only and have no id. Without a place to begin,
         *     the stream begins with the first event of the conversation.
         *
         *     With `client=`, the connection is a client that carries out these tools for as long as it lasts. It is first told what
         *     waits for it, as `call.suspended` with `"snapshot":true`, and then what happens from now on. A client that comes back
         *     is told again what still waits, and knows by the suspension's id what it has taken on already.
         */
        get: operations["follow_conversation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conversations/{conversation}/turns": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Submits a turn
         * @description The calls of one model answer, in toolgate's own form or exactly as the model's provider returned them: an OpenAI chat
         *     completion or its assistant message (`tool_calls`), an OpenAI response (`output`), an Anthropic message (`content` with
         *     `tool_use`; a `server_tool_use` and its `…_tool_result` make a provider's call with its result). A call of an unknown
         *     tool, or with arguments that are not JSON or do not fit, is that call's failure and not the turn's.
         *
         *     Submitting the same calls again under the same ids is the same turn, however often and from wherever it comes: 200
         *     instead of 201. When the answer comes, the turn is on disk.
         */
        post: operations["submit_turn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conversations/{conversation}/turns/{turn}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Reads a turn
         * @description In a provider's form the answer holds what is to be appended to the model's messages. Calls that the provider carried
         *     out are not among it: the provider has their results.
         */
        get: operations["read_turn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conversations/{conversation}/turns/{turn}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancels a turn
         * @description Every call of it that has not ended ends `cancelled`. A turn that has ended stays as it is.
         */
        post: operations["cancel_turn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follows the host
         * @description What becomes of plugins: `plugin.loaded`, `plugin.rejected`, `plugin.unloaded`.
         */
        get: operations["follow_host"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/pending": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists what waits
         * @description Suspensions that this principal may see, oldest first. What waits for the outside is here and nothing else: a guest
         *     that runs is not.
         */
        get: operations["list_pending"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/pending/counts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Counts what waits
         * @description Of what this principal may see.
         */
        get: operations["count_pending"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/pending/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follows what waits
         * @description Of all that this principal may see, as it happens: `pending.opened` and `pending.changed` with the suspension as in the
         *     list, and `pending.closed` once for each suspension, however it ends. The first event is `pending.ready`: read the list
         *     after it, not before. `pending.reset` says that the stream fell behind: read the list again. Nothing is told twice to
         *     whoever comes back, and nothing of what was missed; there are no ids.
         */
        get: operations["follow_pending"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/pending/resolve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answers several suspensions
         * @description Each by itself, one after the other: an answer that does not stand changes nothing and keeps none of the others from
         *     standing. The status is 200 even if none stands; each has its own.
         */
        post: operations["resolve_several"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/plugins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the plugins */
        get: operations["list_plugins"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/plugins/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Loads a plugin
         * @description The body is the component. It takes the place of whatever is live under the name, or is refused with everything that is
         *     wrong with it; then what was live still is. Calls that wait keep the component that they were submitted to.
         */
        put: operations["put_plugin"];
        post?: never;
        /**
         * Unloads a plugin
         * @description Its tools can no longer be called. Calls that wait keep waiting, and run when they are answered.
         */
        delete: operations["remove_plugin"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/policy/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Explains what would become of a call
         * @description Every rule and dynamic policy with whether it fits and why, which one decides, and what follows together with the
         *     tool's declaration. Nothing is called, asked or written down.
         */
        post: operations["explain_policy"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Says who is asking */
        get: operations["read_session"];
        put?: never;
        /**
         * Logs in
         * @description For browsers: gives a cookie that no script can read, for twelve hours or until the token is revoked. Requests with the
         *     cookie other than GET and HEAD carry the `csrf` of the answer in the header `x-toolgate-csrf`.
         */
        post: operations["log_in"];
        /**
         * Logs out
         * @description The session counts no more, here or wherever its cookie was copied to; neither does one that a link opened in the same browser.
         */
        delete: operations["log_out"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/session/link": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Uses a link
         * @description Uses it up, and gives a cookie that may read and answer the link's suspension and do nothing else, for an hour. It is a cookie
         *     of its own: a session of a log-in in the same browser goes on beside it. Looking at the page of a link uses nothing up:
         *     programs that scan mail do that.
         */
        post: operations["use_link"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/standing-approvals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists standing approvals
         * @description Approvers see all of them, callers those for their own calls. They are made with an answer: see `standing` there.
         */
        get: operations["list_standing_approvals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/standing-approvals/{standing}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Takes a standing approval back
         * @description By who gave it, or by an admin. Calls that it let go on have gone on; from now on people are asked again.
         */
        delete: operations["revoke_standing_approval"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/suspensions/{suspension}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads a suspension */
        get: operations["read_suspension"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/suspensions/{suspension}/delegate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Hands an approval on
         * @description One who may approve hands that on to another principal, who may not yet; from then on the other decides and the first no
         *     longer. Where every approver may answer anyway there is nothing to hand on.
         */
        post: operations["delegate_suspension"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/suspensions/{suspension}/links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Makes a link to one suspension
         * @description For one principal, good for one use: it opens a session that may read and answer this suspension and do nothing else.
         *     Sending it to the right person is up to whoever asks for it.
         */
        post: operations["make_link"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/suspensions/{suspension}/resolve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answers a suspension
         * @description When the reply comes, the answer is on disk and the call goes on; the reply never waits for that. The first answer
         *     stands; the same one again by the same principal is `ok` with `replayed`. A refused answer changes nothing.
         */
        post: operations["resolve_suspension"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the live tools
         * @description In a provider's form the answer can be pasted into a request to its models. Provider tools are left out there, as the
         *     provider offers them itself; the header `toolgate-left-out` names them. Schemas are the plugins' own texts.
         */
        get: operations["list_tools"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description What a component may use: what the operator's configuration grants, and it wants. Nothing that can be sent to this API
         *     changes what is granted.
         */
        AccessView: {
            /** @description What this component may use. */
            effective: string[];
            /** @description What is granted under the plugin's name, one grant each. */
            granted: string[];
            /** @description The digests of the components that it is granted to; `any` for whatever bears the name. */
            granted_to: string[];
            /**
             * @description Whether its calls could be replayed from a journal. Those of a component that may use folders could not: what is in
             *     them changes without anybody being told.
             */
            replayable: boolean;
            /** @description What the component says that it wants. Absent where it does not say: then it gets what it is granted. */
            wanted?: components["schemas"]["WantedView"][] | null;
        };
        /**
         * @description Whether a person must approve first.
         * @enum {string}
         */
        Approval: "auto" | "requires-approval";
        /** @description A page of the chain: what is needed to work every hash out anew. */
        AuditChain: {
            /** @description The head of the audit. */
            head: components["schemas"]["AuditHead"];
            /** @description The links, oldest first. */
            links: components["schemas"]["AuditLink"][];
            /**
             * Format: int64
             * @description Where the next page begins: pass it as `after`. `null` where there was nothing more.
             */
            next?: number | null;
        };
        /** @description Something that happened, and whose doing it was. */
        AuditEntry: {
            /**
             * @description What: `turn.started`, `call.requested`, `approve`, `vote`, `delegate`,
             *     `escalate`, `link.made`, `link.used`, `standing.use`, `standing.revoke`, `deny`, `answer`, `result`, `error`, `expired`, `call.started`,
             *     `call.settled`, `cancel`, `turn.settled`, `plugin.loaded`, `plugin.rejected`, `plugin.unloaded`, `host.started`,
             *     `grants.changed`.
             */
            action: string;
            /** @description Which of the answers that a question allows. */
            answer?: string | null;
            /** @description The SHA-256 of the arguments' exact text. */
            arguments?: string | null;
            /** @description When. */
            at: string;
            /**
             * Format: int32
             * @description Which attempt at the call.
             */
            attempt?: number | null;
            /** @description Who; `system` for what the host does by itself. */
            by: string;
            /** @description About which call. */
            call?: string | null;
            /** @description The code of what failed. */
            code?: string | null;
            /** @description Why. */
            comment?: string | null;
            /** @description Which component: the digest of its bytes. */
            component?: string | null;
            /** @description In which conversation. */
            conversation?: string | null;
            /** @description The digest of what it declares of the tool. */
            declaration?: string | null;
            /** @description Bound to what: the digest over arguments, component and declaration; or a component's own. */
            digest?: string | null;
            edited?: null | components["schemas"]["Verbatim"];
            /** @description Why a plugin was refused. */
            findings?: string[];
            /** @description The grants that were in force; of `grants.changed`, those that were added. */
            grants?: string[];
            /** @description The hash of the chain there. */
            hash: string;
            /** @description Which link was made or used, or by which they came. It opens nothing. */
            link?: string | null;
            /** @description How the call or the turn ended. */
            outcome?: string | null;
            /** @description Which run of the host. */
            owner?: string | null;
            /** @description Of which plugin the tool is. */
            plugin?: string | null;
            /**
             * Format: int64
             * @description Where its commit stands. Entries of one commit have the same.
             */
            position: number;
            /** @description The SHA-256 of the result's exact text. */
            result?: string | null;
            /** @description The grants that there are no longer. */
            revoked?: string[];
            /** @description The operator's rule or policy that decided about the call. */
            rule?: string | null;
            /** @description Which standing approval was given, used or taken back. */
            standing?: string | null;
            /** @description Of which tool or plugin. */
            subject?: string | null;
            /** @description By which suspension. */
            suspension?: string | null;
            /** @description To whom a say was handed on, or for whom a link is. */
            to?: string | null;
            /** @description The tools of a plugin that are live. */
            tools?: string[];
            /** @description In which turn. */
            turn?: string | null;
            /** @description Until when the link counts. */
            until?: string | null;
            /** @description The version of the host. */
            version?: string | null;
            /** @description `link`, where whoever did it came by a link. */
            via?: string | null;
            /** @description The webhook that is sent the link. */
            webhook?: string | null;
        };
        /** @description A point in the chain. */
        AuditHead: {
            /** @description Its hash, which covers everything before it. */
            hash: string;
            /**
             * Format: int64
             * @description The position of the last commit; 0 if there is none.
             */
            position: number;
        };
        /** @description A link of the chain. */
        AuditLink: {
            /** @description Its hash, as it was stored. */
            hash: string;
            /**
             * Format: int64
             * @description Where it stands: 1, 2, 3, …
             */
            position: number;
            /** @description The digest that the record has now; absent if the record is missing or damaged. */
            record?: string | null;
            /** @description Where its record is, in hexadecimal, as it is hashed. */
            source: string;
        };
        /** @description A page of the audit. */
        AuditPage: {
            /** @description The entries, oldest first. */
            entries: components["schemas"]["AuditEntry"][];
            /** @description The head of the audit. Kept elsewhere, it is what `toolgate audit verify --head` compares with. */
            head: components["schemas"]["AuditHead"];
            /**
             * Format: int64
             * @description Where the next page begins: pass it as `after`. `null` where there was nothing more.
             */
            next?: number | null;
        };
        /** @description One call of a turn. */
        Call: {
            approval?: null | components["schemas"]["Approval"];
            /** @description Who approved it. */
            approver?: string | null;
            /** @description The arguments as they run: an approver may have edited them. */
            arguments: components["schemas"]["Verbatim"];
            /**
             * Format: int32
             * @description How often it was dispatched.
             */
            attempt: number;
            /** @description The digest of the component that the call is pinned to. */
            component?: string | null;
            content?: null | components["schemas"]["Content"];
            executor?: null | components["schemas"]["Executor"];
            /** @description The caller's id. */
            id: string;
            outcome?: null | components["schemas"]["Outcome"];
            /** @description The plugin that offers the tool. */
            plugin?: string | null;
            receipt?: null | components["schemas"]["Receipt"];
            /** @description How far it has come. */
            status: components["schemas"]["Status"];
            submitted?: null | components["schemas"]["Verbatim"];
            /** @description The suspension that it waits for now. */
            suspension?: string | null;
            /** @description The tool as it was asked for. */
            tool: string;
            /**
             * @description With a result: false where it was made by somebody whom the host does not control. False as well with the failure
             *     that a client or a provider reported, whose words are in `content`.
             */
            trusted?: boolean | null;
        };
        /** @description What the model is to see of one call. */
        CallResult: {
            /** @description `{"ok":true,"result":…}` or `{"ok":false,"error":{"code":…,"message":…}}`. */
            content: components["schemas"]["Content"];
            /** @description The call's id. */
            id: string;
        };
        /** @description How a suspension ended. */
        Closed: {
            arguments?: null | components["schemas"]["Verbatim"];
            /** @description When. */
            at: string;
            /** @description By whom; `system` for an expiry. */
            by: string;
            /** @description Why. */
            comment?: string | null;
            data?: null | components["schemas"]["Verbatim"];
            /** @description The decision, where somebody answered. */
            decision?: string | null;
            /** @description The decision, `expired` or `withdrawn`. */
            state: string;
            /** @description `link`, where whoever answered came by a link. */
            via?: string | null;
        };
        /** @description What a model reads: a result, or an error that it can act on. */
        Content: {
            error?: null | components["schemas"]["ErrorContent"];
            /** @description Whether there is a result. */
            ok: boolean;
            result?: null | components["schemas"]["Verbatim"];
        };
        /** @description A conversation. */
        Conversation: {
            /** @description Its id. */
            conversation: string;
            /** @description Whose it is: who submitted to it first. */
            owner: string;
        };
        /** @description A page of conversations. */
        ConversationPage: {
            /** @description The conversations, in the order of their ids. */
            conversations: components["schemas"]["Conversation"][];
            /** @description Where the next page begins: pass it as `after`. `null` on the last page. A page may be empty and have a next one. */
            next?: string | null;
        };
        /** @description Handing one's say in an approval on. */
        Delegate: {
            /** @description Why. */
            comment?: string | null;
            /** @description The principal who shall decide instead: one who has no say in it yet. */
            to: string;
        };
        /** @description That somebody's say was handed on. */
        Delegated: {
            /** @description Always true; what was not handed on is a problem. */
            ok: boolean;
            /** @description The suspension. */
            suspension: string;
            /** @description To whom. */
            to: string;
        };
        /** @description That somebody handed their say on. */
        Delegation: {
            /** @description When. */
            at: string;
            /** @description Why. */
            comment?: string | null;
            /** @description Who no longer decides. */
            from: string;
            /** @description Who decides instead. */
            to: string;
            /** @description `link`, where whoever handed it on came by a link. */
            via?: string | null;
        };
        /** @description Something that one webhook is told of a suspension, and how far that has come. */
        Delivery: {
            /** @description When it was attempted last; before the first attempt, when it happened. */
            at: string;
            /**
             * Format: int32
             * @description How often it was attempted.
             */
            attempts: number;
            /** @description What it is told: `opened`, `escalated` or `closed`. */
            event: string;
            /** @description What went wrong at the last attempt, escaped. */
            last_error?: string | null;
            /**
             * Format: int32
             * @description The status of the last answer, if there was one.
             */
            last_status?: number | null;
            /** @description When it is attempted next, while it is pending. */
            next_at?: string | null;
            /** @description `pending`, `delivered`; or `failed`, when it was given up. */
            state: string;
            /** @description The name of the webhook. */
            webhook: string;
        };
        /** @description What is told of an event. */
        Detail: {
            caller: string;
            context?: null | components["schemas"]["Verbatim"];
            conversation: string;
            rejection: components["schemas"]["Rejection"];
            turn: string;
        } | {
            approval?: null | components["schemas"]["Approval"];
            arguments: components["schemas"]["Verbatim"];
            call: string;
            component?: string | null;
            executor?: null | components["schemas"]["Executor"];
            plugin?: string | null;
            rule?: string | null;
            tool: string;
            turn: string;
        } | {
            by: string;
            call: string;
            standing: string;
            turn: string;
        } | (components["schemas"]["Vote"] & {
            call: string;
            suspension: string;
            turn: string;
        }) | (components["schemas"]["Delegation"] & {
            call: string;
            suspension: string;
            turn: string;
        }) | {
            call: string;
            suspension: string;
            turn: string;
        } | components["schemas"]["Suspension"] | {
            arguments?: null | components["schemas"]["Verbatim"];
            by: string;
            call: string;
            comment?: string | null;
            data?: null | components["schemas"]["Verbatim"];
            decision: string;
            /** @description True where the arguments are not the submitted ones. */
            edited?: boolean | null;
            standing?: string | null;
            suspension: string;
            turn: string;
            via?: string | null;
        } | {
            call: string;
            suspension: string;
            turn: string;
        } | {
            /** Format: int32 */
            attempt: number;
            call: string;
            tool: string;
            turn: string;
        } | {
            call: string;
            content: components["schemas"]["Content"];
            outcome: components["schemas"]["Outcome"];
            receipt?: null | components["schemas"]["Receipt"];
            status: components["schemas"]["Status"];
            tool: string;
            trusted?: boolean | null;
            turn: string;
            /** @description The suspension that ended with it unanswered. */
            withdrawn?: string | null;
        } | {
            by: string;
            turn: string;
        } | {
            state: components["schemas"]["TurnState"];
            turn: string;
        } | {
            call: string;
            data?: null | components["schemas"]["Verbatim"];
            /** Format: double */
            fraction?: number | null;
            message: string;
            turn: string;
        } | {
            call: string;
            level: string;
            message: string;
            turn: string;
        } | {
            component: string;
            findings?: string[] | null;
            plugin: string;
            tools?: string[] | null;
        };
        /**
         * @description What strangers wrote into a suspension, complete and escaped: control characters, changes of direction, what cannot be
         *     seen and what passes for other letters are written out as `\u{…}`. It still is text, and no HTML.
         */
        Display: {
            /** @description The arguments as a JSON text on one line, equal to the exact ones. */
            arguments: string;
            /** @description The context likewise. */
            context?: string | null;
            /** @description The prompt, of one or more lines. */
            prompt?: string | null;
            /** @description The reason, of one or more lines. */
            reason?: string | null;
            /** @description The title, on one line. */
            title?: string | null;
        };
        /** @description Which arguments an answer may change: `"none"`, `"all"`, or the names of some. */
        Editable: components["schemas"]["EditableWord"] | string[];
        /**
         * @description None or all.
         * @enum {string}
         */
        EditableWord: "none" | "all";
        /**
         * @description What becomes of a call in the end.
         * @enum {string}
         */
        Effect: "run" | "ask" | "deny";
        /** @description Why there is no result. */
        ErrorContent: {
            /** @description An outcome, or the code of a failure. */
            code: string;
            /** @description A sentence for the model. */
            message: string;
        };
        /** @description Who may answer as well after a while. */
        Escalation: {
            /**
             * Format: int64
             * @description After so many milliseconds.
             */
            after_ms: number;
            /** @description These, as in `who`. */
            to: string[];
        };
        /** @description One event: its name and time, and what is told of it beside them in the same object. */
        Event: components["schemas"]["Detail"] & {
            /** @description When it became true; absent for what is live only. */
            at?: string | null;
            /** @description Its name, `call.suspended` for instance. */
            event: string;
            /** @description True where it is told again because a client has just attached. */
            snapshot?: boolean | null;
        };
        /**
         * @description Who produces the result of a call.
         * @enum {string}
         */
        Executor: "server" | "human" | "client" | "provider";
        /** @description A call to be explained. */
        Explain: {
            /** @description The arguments: an object. */
            arguments: components["schemas"]["Verbatim"];
            /** @description Who would make the call. Whoever asks, if absent. */
            caller?: string | null;
            context?: null | components["schemas"]["Verbatim"];
            /** @description In which conversation. One that holds nothing, if absent. */
            conversation?: string | null;
            /** @description The tool's name. */
            tool: string;
        };
        /** @description One rule or dynamic policy. */
        ExplainedStep: {
            /** @description Whether it fits the call. */
            matched: boolean;
            /** @description Its name. */
            name: string;
            /** @description What it says of calls that it fits. */
            rule: components["schemas"]["Rule"];
            /** @description Why it fits, or why not. Values are quoted harmlessly, and only their beginning. */
            why: string;
        };
        /** @description What would become of a call, and why. */
        Explanation: {
            /** @description The rule or policy that decides. Absent where none does and the tool's declaration stands. */
            by?: string | null;
            /** @description What the tool itself declares. */
            declared: components["schemas"]["Approval"];
            /** @description What follows from all of it. */
            effective: components["schemas"]["Effect"];
            /** @description How the arguments break the tool's schema. If they do, a call with them fails before any rule is asked. */
            invalid?: string[];
            /** @description Who would have to approve; all of it. Empty: any one approver. */
            needs: components["schemas"]["RequiredApproval"][];
            /** @description Why, in the words of whoever decides. */
            reason?: string | null;
            /** @description How much is at stake: `low`, `medium`, `high` or `critical`. */
            risk?: string | null;
            /** @description The strictest of what fits: rules and policies. */
            rule: components["schemas"]["Rule"];
            /** @description Each rule, then each dynamic policy. */
            steps: components["schemas"]["ExplainedStep"][];
        };
        /** @description One thing that keeps a plugin from being loaded. */
        FindingView: {
            /** @description What is wrong. */
            message: string;
            /** @description What to change. */
            remedy: string;
            /** @description The rule that is broken; a stable name. */
            rule: string;
            /** @description The tool, where it is about one. */
            tool?: string | null;
        };
        /** @description That the server answers. */
        Health: {
            /** @description Always `ok`. */
            status: string;
        };
        /** @description What a tool says of its effects. No decision of the host reads it. */
        Hints: {
            /** @description What it changes may be lost. */
            destructive?: boolean | null;
            /** @description A second call with the same arguments changes nothing more. */
            idempotent?: boolean | null;
            /** @description It deals with a world beyond the host. */
            open_world?: boolean | null;
            /** @description It changes nothing. */
            read_only?: boolean | null;
        };
        /**
         * @description What is waited for, and so what renders it.
         * @enum {string}
         */
        Kind: "approval" | "elicitation" | "client_exec";
        /** @description How many suspensions wait for what. */
        KindCounts: {
            /** @description For a yes or no. */
            approval: number;
            /** @description For a client's result. */
            client_exec: number;
            /** @description For a person's answer. */
            elicitation: number;
        };
        /** @description A link, good for one use. */
        Link: {
            /** @description From then on it counts no more. */
            expires_at: string;
            /** @description Its path on this host. Whoever has it may answer in the principal's name. */
            url: string;
        };
        /**
         * @description What a link opened beside the session of a log-in. It is for one suspension: requests about that one belong to it, unless they
         *     carry the `csrf` of the other session in the header `x-toolgate-csrf`; with its own they belong to it in any case.
         */
        LinkSession: {
            /** @description What goes with its requests. */
            csrf: string;
            /** @description When it ends. */
            expires_at: string;
            /** @description The suspension. */
            only: string;
            /** @description In whose name. */
            principal: string;
        };
        /** @description A token to log in with. */
        LogIn: {
            /** @description The token. */
            token: string;
        };
        /** @description That a session has ended. */
        LoggedOut: {
            /** @description Always true. */
            ok: boolean;
        };
        /** @description For whom a link is to be, and for how long. */
        MakeLink: {
            /** @description Who uses it: the name of a token with the role `approver` or `admin`. */
            principal: string;
            /**
             * Format: int64
             * @description For how many milliseconds it counts: at most 604800000, seven days; an hour if absent.
             */
            ttl_ms?: number | null;
        };
        /** @description Something that an approval needs: so many of these people. */
        Need: {
            /** @description Whether they do by now. */
            escalated: boolean;
            /** @description When others count as well. */
            escalates_at?: string | null;
            /** @description Who they are. */
            escalates_to?: string[];
            /**
             * Format: int32
             * @description How many different ones.
             */
            quorum: number;
            /**
             * Format: int32
             * @description How many there are, of the votes for what most voted for.
             */
            votes: number;
            /** @description Who counts: `principal:NAME`, `group:NAME`, `role:NAME`. Empty: any approver. */
            who: string[];
        };
        /** @description What becomes of a wait that ran out: `"error"`, `"deny"`, `"approve"` or `{"answer":…}`. */
        OnExpiry: "error" | "deny" | "approve" | {
            /** @description This value is the answer. */
            answer: components["schemas"]["Verbatim"];
        };
        /**
         * @description How a call ended.
         * @enum {string}
         */
        Outcome: "ok" | "failed" | "denied" | "expired" | "cancelled" | "cancelled_by_sibling" | "unavailable" | "invalidated" | "in_doubt";
        /** @description That a suspension waits no more. */
        PendingClosed: {
            /** @description When. */
            at: string;
            /** @description By whom; `system` for what the host does by itself. */
            by: string;
            /** @description Its conversation. */
            conversation: string;
            /** @description The decision, `expired` or `withdrawn`. */
            state: string;
            /** @description Which. */
            suspension: string;
            /** @description `link`, where whoever answered came by a link. */
            via?: string | null;
        };
        /** @description How many suspensions wait. */
        PendingCounts: {
            /** @description By what is waited for. */
            by_kind: components["schemas"]["KindCounts"];
            /** @description Whether all were counted. A count looks at a bounded number, and there are more than it says if this is false. */
            complete: boolean;
            /** @description All of them. */
            open: number;
        };
        /** @description A page of suspensions. */
        PendingPage: {
            /** @description Where the next page begins: pass it as `after`. `null` on the last page. A page may be empty and have a next one. */
            next?: string | null;
            /** @description The suspensions, oldest first. */
            suspensions: components["schemas"]["Suspension"][];
        };
        /** @description `"all"`, or JSON Pointers into the arguments; those that are not named are free. */
        Pinned: components["schemas"]["PinnedWord"] | string[];
        /**
         * @description All arguments.
         * @enum {string}
         */
        PinnedWord: "all";
        /** @description Every plugin that is live or was refused. */
        PluginList: {
            /** @description Sorted by name. */
            plugins: components["schemas"]["PluginView"][];
        };
        /**
         * @description What became of a plugin.
         * @enum {string}
         */
        PluginState: "live" | "rejected";
        /** @description A plugin. */
        PluginView: {
            access?: null | components["schemas"]["AccessView"];
            /**
             * @description The version of the interface that this component was built against, such as `toolgate:plugin@0.1.1`. Absent where
             *     nothing of it could be read.
             */
            built_against?: string | null;
            /** @description The digest of the component: of the live one, or of the one that was refused. */
            digest: string;
            /** @description What is wrong with the component that was last found under this name. */
            findings: components["schemas"]["FindingView"][];
            /** @description Its name. */
            name: string;
            /**
             * @description Whether what was found last under this name has to be looked at by the operator before it gets what the plugin is
             *     granted.
             */
            needs_review: boolean;
            /** @description What became of it. */
            state: components["schemas"]["PluginState"];
            /** @description The names of its live tools. */
            tools: string[];
        };
        /** @description Something that is wrong at one place of a body. */
        Pointed: {
            /** @description What is wrong there. */
            message: string;
            /** @description JSON Pointer (RFC 6901) into the body; empty for the whole. */
            pointer: string;
        };
        /** @description Why a request was not carried out. Nothing of it happened. `code` is stable; the sentences are not. */
        Problem: {
            /** @description When (`stale`). */
            at?: string | null;
            /** @description Who ended it (`stale`). */
            by?: string | null;
            /** @description The call id that is taken (`call-id-taken`). */
            call?: string | null;
            /** @description The stable name of the problem. */
            code: string;
            /** @description What was wrong this time, and what to do about it. What it quotes is escaped: it can be shown as it is. */
            detail: string;
            /** @description What the digest is (`digest-mismatch`). */
            digest?: string | null;
            /** @description Where in the body something is wrong (`invalid`). */
            errors?: components["schemas"]["Pointed"][];
            /** @description What to look for in the host's log (`fault`). */
            fault?: string | null;
            /** @description Everything that is wrong with the plugin (`plugin-refused`). */
            findings?: components["schemas"]["FindingView"][];
            /**
             * Format: int64
             * @description After how many seconds it is worth while to try again (`busy`); the header `retry-after` says the same.
             */
            retry_after?: number | null;
            /** @description How the question ended (`stale`). */
            state?: string | null;
            /**
             * Format: int32
             * @description The HTTP status.
             */
            status: number;
            /** @description What the code means, the same every time. */
            title: string;
            /** @description `/problems/` and the code. */
            type: string;
        };
        /**
         * @description Whose words a prompt is.
         * @enum {string}
         */
        PromptBy: "plugin" | "host";
        /** @description What one run of a guest spent. */
        Receipt: {
            /**
             * Format: int64
             * @description What went into the guest: arguments, and values, bodies and contents of files that it was given.
             */
            bytes_in: number;
            /**
             * Format: int64
             * @description What came out of it: result, progress and log, and what it stored, wrote and sent.
             */
            bytes_out: number;
            /**
             * Format: int64
             * @description Calls of host functions.
             */
            host_calls: number;
            /**
             * Format: int64
             * @description What the host held in its own memory on its behalf, at its largest, in bytes.
             */
            peak_host_bytes: number;
            /**
             * Format: int64
             * @description Its linear memories at their largest, in bytes.
             */
            peak_memory_bytes: number;
            /**
             * Format: int64
             * @description From the moment that it had a place to its end, in microseconds; waits in host functions included.
             */
            time_us: number;
        };
        /**
         * @description What a denial does to the other calls of its turn.
         * @enum {string}
         */
        Rejection: "continue_siblings" | "cancel_siblings" | "abort_turn";
        /** @description That a plugin is no longer live. */
        Removed: {
            /** @description The plugin. */
            removed: string;
        };
        /** @description People who have to approve. */
        RequiredApproval: {
            escalate?: null | components["schemas"]["Escalation"];
            /**
             * Format: int32
             * @description How many different ones.
             */
            quorum: number;
            /** @description Any of these: `principal:NAME`, `group:NAME`, `role:NAME`. Empty: whoever has the role approver. */
            who: string[];
        };
        /** @description An answer. Who gives it is known from the transport and never from here. */
        Resolve: {
            arguments?: null | components["schemas"]["Verbatim"];
            /** @description Why. */
            comment?: string | null;
            data?: null | components["schemas"]["Verbatim"];
            /** @description One of the allowed decisions. */
            decision: string;
            /** @description The digest of what was shown. With it, an answer to anything else is refused. */
            expect_digest?: string | null;
            standing?: null | components["schemas"]["StandingTerms"];
        };
        /** @description An answer to one of several. */
        ResolveOne: {
            arguments?: null | components["schemas"]["Verbatim"];
            /** @description Why. */
            comment?: string | null;
            data?: null | components["schemas"]["Verbatim"];
            /** @description One of the allowed decisions. */
            decision: string;
            /** @description The digest of what was shown. With it, an answer to anything else is refused. */
            expect_digest?: string | null;
            standing?: null | components["schemas"]["StandingTerms"];
            /** @description To which suspension. */
            suspension: string;
        };
        /** @description Answers to several suspensions. Each stands or falls for itself. */
        ResolveSeveral: {
            /** @description The answers, 1 to 100. They are given in this order. */
            answers: components["schemas"]["ResolveOne"][];
        };
        /** @description That an answer stands. */
        Resolved: {
            /** @description Always true; an answer that does not stand is a problem. */
            ok: boolean;
            /** @description Whether the same principal had given the same answer before. */
            replayed: boolean;
            /** @description How it is now: `open` where others have to approve as well; or how it ended. */
            state: string;
            /** @description The suspension that was answered. */
            suspension: string;
            /**
             * Format: int32
             * @description How many approvals are missing at least.
             */
            votes_missing: number;
        };
        /** @description What became of one of several answers. */
        ResolvedOne: {
            ok?: null | components["schemas"]["Resolved"];
            problem?: null | components["schemas"]["Problem"];
            /**
             * Format: int32
             * @description The status that it would have had by itself: 200 where it stands.
             */
            status: number;
            /** @description To which suspension. */
            suspension: string;
        };
        /** @description What became of several answers. */
        ResolvedSeveral: {
            /** @description In the order of the answers. */
            answers: components["schemas"]["ResolvedOne"][];
        };
        /** @description How long a result is worth keeping. For whoever keeps the context; the host does not act upon it. */
        Retention: {
            /**
             * Format: int32
             * @description Drop results that are older than this many turns.
             */
            max_age_turns?: number | null;
            /**
             * Format: int32
             * @description Keep at most this many results.
             */
            max_count?: number | null;
            /** @description Never drop one. */
            never_evict: boolean;
        };
        /**
         * @description How bad it would be if a call went wrong.
         * @enum {string}
         */
        Risk: "low" | "medium" | "high" | "critical";
        /**
         * @description What the operator's policy says of a tool.
         * @enum {string}
         */
        Rule: "allow" | "ask" | "deny";
        /** @description Who is asking. */
        Session: {
            /** @description The only conversation that is open to it. */
            conversation?: string | null;
            /**
             * @description What goes with each request of the session other than GET and HEAD, in the header `x-toolgate-csrf`. Absent where a
             *     bearer token asks.
             */
            csrf?: string | null;
            /** @description When the session ends. Absent where a bearer token asks. */
            expires_at?: string | null;
            /** @description The groups. */
            groups: string[];
            link?: null | components["schemas"]["LinkSession"];
            /** @description The only suspension that is open to it, where a link opened the session. */
            only?: string | null;
            /** @description The name. */
            principal: string;
            /** @description The roles: `caller`, `approver`, `client`, `admin`. */
            roles: string[];
        };
        /** @description A standing approval. */
        StandingApproval: {
            /** @description The arguments that were approved. */
            arguments: components["schemas"]["Verbatim"];
            /** @description Who gave it. */
            by: string;
            /** @description For whose calls. */
            caller: string;
            /** @description Of which component: not of the next version of the plugin. */
            component: string;
            /** @description In which conversation that was. It counts in the caller's others as well. */
            conversation: string;
            /** @description When it was given. */
            created_at: string;
            /** @description Until when it can be used. */
            expires_at: string;
            /** @description Its id. */
            id: string;
            /** @description Which of them a later call must have. */
            pin: components["schemas"]["Pinned"];
            /** @description Of which plugin. */
            plugin: string;
            /** @description When. */
            revoked_at?: string | null;
            /** @description Who took it back. */
            revoked_by?: string | null;
            /** @description Whether it can still be used. */
            state: components["schemas"]["StandingState"];
            /** @description With the answer to which suspension. */
            suspension: string;
            /** @description Of which tool. */
            tool: string;
            /**
             * Format: int32
             * @description How often it was.
             */
            used: number;
            /**
             * Format: int32
             * @description How often it can be used.
             */
            uses: number;
        };
        /** @description A page of standing approvals. */
        StandingApprovals: {
            /** @description Where the next page begins: pass it as `after`. `null` on the last page. A page may be empty and have a next one. */
            next?: string | null;
            /** @description Those that this principal may see, oldest first. */
            standing_approvals: components["schemas"]["StandingApproval"][];
        };
        /** @description The most that may be allowed beforehand. */
        StandingBounds: {
            /**
             * Format: int64
             * @description For how long, in milliseconds.
             */
            max_ttl_ms: number;
            /**
             * Format: int32
             * @description How often.
             */
            max_uses: number;
        };
        /**
         * @description Whether a standing approval can still be used.
         * @enum {string}
         */
        StandingState: "active" | "used_up" | "expired" | "revoked";
        /** @description What an approval shall allow beforehand: later calls of the same caller, tool and component, with these arguments pinned. */
        StandingTerms: {
            /** @description Which arguments must be those that are approved now. */
            pin: components["schemas"]["Pinned"];
            /**
             * Format: int64
             * @description For how long from now on, in milliseconds.
             */
            ttl_ms: number;
            /**
             * Format: int32
             * @description How often, from 1.
             */
            uses: number;
        };
        /**
         * @description How far a call has come.
         * @enum {string}
         */
        Status: "running" | "awaiting" | "resolved" | "errored";
        /** @description A turn to submit, in toolgate's own form. */
        Submit: {
            /** @description The calls, in the order in which the model asked for them. */
            calls: components["schemas"]["SubmitCall"][];
            context?: null | components["schemas"]["Verbatim"];
            /** @description Not to be written down as long as nothing of it waits. */
            ephemeral?: boolean;
            rejection?: null | components["schemas"]["Rejection"];
        };
        /** @description One call to submit. */
        SubmitCall: {
            /** @description The arguments: an object. Anything else is that call's failure, not the turn's. */
            arguments: components["schemas"]["Verbatim"];
            /** @description Why a provider tool failed, from the provider's stream. */
            error?: string | null;
            /** @description Unique in the conversation. The same id with the same content is the same call, however often it is submitted. */
            id: string;
            result?: null | components["schemas"]["Verbatim"];
            /** @description The tool's name. */
            tool: string;
        };
        /**
         * @description One thing that a call waits for, or waited for, with all that is needed to show and to answer it.
         *
         *     What a plugin or a model wrote (`prompt`, `arguments`, `context`) is exact: whoever shows it escapes it, or shows what
         *     is in `display`.
         */
        Suspension: {
            /** @description The decisions to choose from. */
            allowed: string[];
            /** @description The arguments that the question is about. */
            arguments: components["schemas"]["Verbatim"];
            /** @description The SHA-256 of their exact text. */
            arguments_digest: string;
            /** @description The operator's rule or policy that asks. Absent where the tool declares that it is to be asked. */
            asked_by?: string | null;
            /** @description Its call. */
            call: string;
            /** @description Who submitted the turn. */
            caller: string;
            closed?: null | components["schemas"]["Closed"];
            /** @description The digest of the component. */
            component?: string | null;
            context?: null | components["schemas"]["Verbatim"];
            /** @description Its conversation. */
            conversation: string;
            /** @description When the wait began. */
            created_at: string;
            /** @description The digest of the tool's declaration. */
            declaration?: string | null;
            /** @description Who handed their say on. */
            delegations?: components["schemas"]["Delegation"][];
            /** @description What webhooks were told of it, or are still to be told, in order. Only where an approver or an admin reads it by itself. */
            deliveries?: components["schemas"]["Delivery"][];
            /** @description Digest over arguments, component and declaration: what an answer is an answer to. */
            digest: string;
            display?: null | components["schemas"]["Display"];
            /** @description Which arguments the answer may change. */
            editable: components["schemas"]["Editable"];
            executor?: null | components["schemas"]["Executor"];
            /** @description When it ends by itself. */
            expires_at: string;
            /**
             * Format: int32
             * @description The attempt that was running when a host was killed, where the question is whether to run it again.
             */
            in_doubt_attempt?: number | null;
            /** @description What is waited for. */
            kind: components["schemas"]["Kind"];
            /** @description Who must approve, all of them; of a question, who may answer it. Empty: any one approver. */
            needs: components["schemas"]["Need"][];
            /** @description What becomes of it then. */
            on_expiry: components["schemas"]["OnExpiry"];
            /** @description The plugin that offers the tool. */
            plugin?: string | null;
            /** @description What people are asked. */
            prompt?: string | null;
            /** @description Whose words the prompt is. A plugin's may say anything. */
            prompt_by: components["schemas"]["PromptBy"];
            /** @description Why it asks. */
            reason?: string | null;
            response_schema?: null | components["schemas"]["Verbatim"];
            risk?: null | components["schemas"]["Risk"];
            standing?: null | components["schemas"]["StandingBounds"];
            /** @description `open`; or how it ended: the decision, `expired` or `withdrawn`. `closed` is absent exactly while it is open. */
            state: string;
            /** @description Its id. */
            suspension: string;
            /** @description What the plugin calls the tool for people. */
            title?: string | null;
            /** @description The tool. */
            tool: string;
            /** @description Its turn. */
            turn: string;
            /** @description The approvals so far, where it takes more than one. */
            votes?: components["schemas"]["Vote"][];
            you?: null | components["schemas"]["You"];
        };
        /** @description A live tool. Its schemas are the plugin's own texts. */
        Tool: {
            /** @description What gates a call, the operator's policy applied. */
            approval: components["schemas"]["Approval"];
            /** @description The digest of the component. */
            component: string;
            /** @description The digest of the declaration. */
            declaration: string;
            /** @description For the model. */
            description: string;
            /** @description Which arguments an approver may change. */
            editable: components["schemas"]["Editable"];
            /** @description Who produces the result. */
            executor: components["schemas"]["Executor"];
            hints?: null | components["schemas"]["Hints"];
            /** @description Unique across the host. */
            name: string;
            /** @description What becomes of a wait that ran out. */
            on_expiry: components["schemas"]["OnExpiry"];
            /** @description JSON Schema of the arguments. */
            parameters: components["schemas"]["Verbatim"];
            /** @description The plugin that offers it. */
            plugin: string;
            response?: null | components["schemas"]["Verbatim"];
            /** @description The decisions that a person may choose from. */
            responses?: string[] | null;
            result?: null | components["schemas"]["Verbatim"];
            retention?: null | components["schemas"]["Retention"];
            /** @description What the operator's policy says of it. */
            rule: components["schemas"]["Rule"];
            /** @description Whether it reports progress. */
            streaming: boolean;
            /** @description A name for people. */
            title?: string | null;
        };
        /** @description Every live tool. */
        ToolList: {
            /** @description Sorted by name. */
            tools: components["schemas"]["Tool"][];
        };
        ToolsInForm: components["schemas"]["ToolList"] | Record<string, never>[] | {
            tools: {
                /** @description A JSON Schema. */
                inputSchema: Record<string, never>;
                name: string;
            }[];
        };
        /** @description A turn. */
        Turn: {
            /** @description Who submitted it. */
            caller: string;
            /** @description Its calls, in the order in which the model asked for them. */
            calls: components["schemas"]["Call"][];
            context?: null | components["schemas"]["Verbatim"];
            /** @description Where it belongs. */
            conversation: string;
            /** @description When it ended. */
            ended_at?: string | null;
            /** @description Whether it was carried out without being written down, so that it cannot be read again. */
            ephemeral: boolean;
            /** @description What of it waits for the outside. */
            pending: components["schemas"]["Suspension"][];
            /** @description What a denial does to the other calls. */
            rejection: components["schemas"]["Rejection"];
            /** @description Whether this submission had been made before, and the turn is the recorded one. */
            replayed: boolean;
            /** @description What the model is to see, in the order of the calls; there once the turn has ended. */
            results?: components["schemas"]["CallResult"][] | null;
            /** @description Whether a guest of it runs at this moment. */
            running: boolean;
            /** @description When it was submitted. */
            started_at: string;
            /** @description Whether it goes on, or how it ended. */
            state: components["schemas"]["TurnState"];
            /** @description Its id. */
            turn: string;
        };
        TurnInForm: components["schemas"]["Turn"] | Record<string, never>[] | {
            content: Record<string, never>[];
            /** @enum {string} */
            role: "user";
        };
        /**
         * @description Whether a turn goes on, or how it ended.
         * @enum {string}
         */
        TurnState: "open" | "settled" | "aborted" | "cancelled";
        /** @description A link to use up. */
        UseLink: {
            /** @description The link: the part after `/link/`, or all of it. */
            link: string;
        };
        /** @description Any JSON value, verbatim. */
        Verbatim: unknown;
        /** @description One principal's approval, where it takes more than one. */
        Vote: {
            arguments?: null | components["schemas"]["Verbatim"];
            /** @description When. */
            at: string;
            /**
             * @description Digest over the arguments, the component and the declaration that it approves. Votes count together where this is the
             *     same.
             */
            binding: string;
            /** @description Whose. */
            by: string;
            /** @description Why. */
            comment?: string | null;
            /**
             * @description Those arguments for people: a JSON text on one line, escaped as in the suspension's `display` and equal to the exact
             *     ones. An answer with this text is a vote for the same. Absent from turns and events.
             */
            display?: string | null;
            /** @description `link`, where whoever it is came by a link. */
            via?: string | null;
        };
        /** @description One thing that a component wants. */
        WantedView: {
            /** @description `granted`, `in part` or `missing`. */
            standing: string;
            /** @description What. */
            what: string;
            /** @description Why, in the plugin's words: escape them where they are shown. */
            why: string;
        };
        /** @description What a suspension is to whoever asks for it. */
        You: {
            /** @description The `binding` of that vote. A vote for another one takes its place. */
            binding?: string | null;
            /** @description Whether the same approval would count for more than that vote does: they have voted, and were asked for more since then. */
            counts_again: boolean;
            /** @description Whether an answer of theirs would be taken now. */
            may_answer: boolean;
            /** @description Whether they have approved it already, and it takes others as well. */
            voted: boolean;
            /** @description Why not. */
            why_not?: string | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    read_health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It does */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Prometheus text */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OpenAPI 3.1 */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_audit: {
        parameters: {
            query?: {
                /** @description Only those after this position: the `next` of the page before. */
                after?: number;
                /** @description At most about so many: 1 to 500, 100 if absent. Entries of one commit are never parted. */
                limit?: number;
                /** @description Only those of this conversation. */
                conversation?: string;
                /** @description Only those of this turn. */
                turn?: string;
                /** @description Only those of this tool or plugin. */
                subject?: string;
                /** @description Only those of this plugin and of calls of its tools. */
                plugin?: string;
                /** @description Only what this principal did. */
                by?: string;
                /** @description Only this. */
                action?: string;
                /** @description The same as `by`. */
                principal?: string;
                /** @description The same as `action`. */
                event?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page, oldest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditPage"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_audit_chain: {
        parameters: {
            query?: {
                /** @description Only those after this position: the `next` of the page before. */
                after?: number;
                /** @description At most so many: 1 to 500, 100 if absent. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page, oldest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditChain"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_conversations: {
        parameters: {
            query?: {
                /** @description Only those after this one: the `next` of the page before. */
                after?: string;
                /** @description At most so many: 1 to 500, 100 if absent. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConversationPage"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    follow_conversation: {
        parameters: {
            query?: {
                /** @description Attach as the client that carries out these tools, their names separated by commas. */
                client?: string;
                /** @description The id of the event after which to begin, or `now`. The header `last-event-id` goes before it. */
                after?: string;
            };
            header?: never;
            path: {
                /** @description The conversation. */
                conversation: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events; each `data` is an Event */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["Event"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed`: a client without the role `client` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: the conversation is somebody else's */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    submit_turn: {
        parameters: {
            query?: {
                /** @description How long to wait at most; 0 if absent, and never longer than the host's bound (60 s by default). */
                wait_ms?: number;
                /** @description Until when to wait: `quiet` if absent. */
                until?: "settled" | "quiet";
                /** @description The form of the answer. The form of the body is told by its members. */
                format?: "toolgate" | "openai" | "openai-responses" | "anthropic";
                /** @description For bodies in a provider's form: a JSON object for tools and people. */
                context?: string;
                /** @description For bodies in a provider's form: what a denial does to the other calls. */
                rejection?: "continue_siblings" | "cancel_siblings" | "abort_turn";
                /** @description For bodies in a provider's form: not to be written down as long as nothing of it waits. */
                ephemeral?: boolean;
            };
            header?: never;
            path: {
                /** @description The conversation, named by its caller. */
                conversation: string;
            };
            cookie?: never;
        };
        /** @description Or a model's answer in its provider's form. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["Submit"];
            };
        };
        responses: {
            /** @description The turn, recorded before */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TurnInForm"];
                };
            };
            /** @description The turn, new */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TurnInForm"];
                };
            };
            /** @description With a provider's `format`: submitted, and not ended yet. The turn in toolgate's own form; read it at `location` */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Turn"];
                };
            };
            /** @description `bad-json`, `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed`: without the role `caller` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: the conversation is somebody else's */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-slow`: the body did not arrive in time */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `call-id-taken`: submitted before, as another call or among others */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid`: which members are wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_turn: {
        parameters: {
            query?: {
                /** @description How long to wait at most; 0 if absent, and never longer than the host's bound (60 s by default). */
                wait_ms?: number;
                /** @description Until when to wait: `settled` if absent. */
                until?: "settled" | "quiet";
                /** @description The form of the answer. */
                format?: "toolgate" | "openai" | "openai-responses" | "anthropic";
            };
            header?: never;
            path: {
                /** @description The conversation. */
                conversation: string;
                /** @description The turn. */
                turn: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The turn, or what it gives back to the model */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Turn"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed`: a session that a link opened, or one with which a page of another site asks */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-settled`: in a provider's form a turn can be read once it has ended */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    cancel_turn: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The conversation. */
                conversation: string;
                /** @description The turn. */
                turn: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The turn as it is now */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Turn"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed`: neither its caller nor an admin */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    follow_host: {
        parameters: {
            query?: {
                /** @description The id of the event after which to begin, or `now`. The header `last-event-id` goes before it. */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events; each `data` is an Event */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["Event"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_pending: {
        parameters: {
            query?: {
                /** @description Only those of this conversation. */
                conversation?: string;
                /** @description Only those of turns that this principal submitted. */
                caller?: string;
                /** @description Only those of calls of this tool. */
                tool?: string;
                /** @description Only those of this kind. */
                kind?: "approval" | "elicitation" | "client_exec";
                /** @description Only those that wait (if absent), only those that ended, or all. */
                state?: "open" | "closed" | "all";
                /** @description Only those that this principal may answer now. A page may be empty and still have a next one. */
                mine?: boolean;
                /** @description Only those after this one: the `next` of the page before. */
                after?: string;
                /** @description At most so many: 1 to 500, 100 if absent. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PendingPage"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed`: a session that a link opened, or one with which a page of another site asks */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    count_pending: {
        parameters: {
            query?: {
                /** @description Only those of this conversation. */
                conversation?: string;
                /** @description Only those of turns that this principal submitted. */
                caller?: string;
                /** @description Only those of calls of this tool. */
                tool?: string;
                /** @description Only those of this kind. */
                kind?: "approval" | "elicitation" | "client_exec";
                /** @description Only those that this principal may answer now. */
                mine?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How many */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PendingCounts"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    follow_pending: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events; `data` is a Suspension, of `pending.closed` a PendingClosed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["PendingClosed"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    resolve_several: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResolveSeveral"];
            };
        };
        responses: {
            /** @description What became of each */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResolvedSeveral"];
                };
            };
            /** @description `bad-json`, `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-slow`: the body did not arrive in time */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid`: with `errors` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_plugins: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Every plugin that is live or was refused */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PluginList"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    put_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The plugin's name. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/wasm": number[];
            };
        };
        responses: {
            /** @description The plugin, live */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PluginView"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-slow`: the component did not arrive in time */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `plugin-refused`: with all `findings` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    remove_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The plugin's name. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is no longer live */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Removed"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    explain_policy: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Explain"];
            };
        };
        responses: {
            /** @description What would become of it */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Explanation"];
                };
            };
            /** @description `bad-json`, `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found`: there is no such tool */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-slow`: the body did not arrive in time */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid`: with `errors` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Who it is */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed`: a page of another site asks */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    log_in: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LogIn"];
            };
        };
        responses: {
            /** @description Who it is; with `set-cookie` */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            /** @description `bad-json`, `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: the token is not known here */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed`: a page of another site asks */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-slow`: the body did not arrive in time */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid`: with `errors` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: too many wrong attempts from this address; with `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    log_out: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It has ended */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoggedOut"];
                };
            };
            /** @description `bad-request`: a bearer token asks, which is no session */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed`: without the right `x-toolgate-csrf`, or a page of another site asks */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    use_link: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UseLink"];
            };
        };
        responses: {
            /** @description Who it is, and `only` which suspension; with `set-cookie` */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            /** @description `bad-json`, `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: the link was not made here, has expired, or was revoked with its token */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed`: a page of another site asks */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-slow`: the body did not arrive in time */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `link-used`: somebody has used it. `stale`: the question has ended; with `state`, `by` and `at` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid`: with `errors` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: too many wrong attempts from this address; with `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_standing_approvals: {
        parameters: {
            query?: {
                /** @description Only those after this one: the `next` of the page before. */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Some of them, and where the next begin */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StandingApprovals"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed`: a session that a link opened, or one with which a page of another site asks */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    revoke_standing_approval: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The standing approval. */
                standing: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description As it is now */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StandingApproval"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed`: somebody else gave it */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_suspension: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The suspension. */
                suspension: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The suspension, open or ended */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Suspension"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed`: a link to another one */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delegate_suspension: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The suspension. */
                suspension: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Delegate"];
            };
        };
        responses: {
            /** @description It was handed on */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delegated"];
                };
            };
            /** @description `bad-json`, `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-slow`: the body did not arrive in time */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `stale`: no longer open, or unknown */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid`: with `errors` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    make_link: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The suspension. */
                suspension: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MakeLink"];
            };
        };
        responses: {
            /** @description The link; nobody can look it up again */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Link"];
                };
            };
            /** @description `bad-json`, `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed`; a hundred links to one suspension are made and no more */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-slow`: the body did not arrive in time */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `stale`: no longer open; with `state`, `by` and `at` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid`: with `errors`; nobody of that name answers */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    resolve_suspension: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The suspension. */
                suspension: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Resolve"];
            };
        };
        responses: {
            /** @description The answer stands */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Resolved"];
                };
            };
            /** @description `bad-json`, `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-slow`: the body did not arrive in time */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `stale`: no longer open, or unknown; with `state`, `by` and `at`. `digest-mismatch`: with the `digest` as it is */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too-large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported-media-type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid`: with `errors` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_tools: {
        parameters: {
            query?: {
                /** @description The form of the answer. */
                format?: "toolgate" | "openai" | "openai-responses" | "anthropic" | "mcp";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tools */
            200: {
                headers: {
                    /** @description The provider tools that the form leaves out, separated by commas */
                    "toolgate-left-out"?: string | null;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolsInForm"];
                };
            };
            /** @description `bad-request` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not-allowed`: a session that a link opened, or one with which a page of another site asks */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown-host`: the server does not answer under this name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `busy`: the principal has as much at the host as it may; nothing happened. With `retry-after` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `fault`: the host failed, with an id to look for in its log */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
}
