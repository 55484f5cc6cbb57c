// Written by `everturn install`, removed by `everturn uninstall`. Passes events on to everturn-hook, which notes names,
// ids and sizes, never content, and prints at most some context for the model. A failure of it is nobody's business here.
import { spawnSync } from "node:child_process"

const WORDS = {/* words */}
const TIMEOUT = {/* milliseconds */}

export const Everturn = async ({ directory }) => {
  const context = new Map() // session → texts for the model
  const run = (words, event) => {
    try {
      const input = JSON.stringify({ cwd: directory, ...event })
      const done = spawnSync(words[0], words.slice(1), { input, timeout: TIMEOUT, windowsHide: true, cwd: directory })
      const said = done.stdout && done.stdout.length ? JSON.parse(done.stdout.toString()) : null
      const text = said && said.hookSpecificOutput && said.hookSpecificOutput.additionalContext
      if (text) context.set(event.session_id, [...(context.get(event.session_id) || []), text])
    } catch {}
  }
  return {
    event: async ({ event }) => {
      const about = event.properties || {}
      const session_id = about.sessionID || (about.info && about.info.id)
      if (!session_id) return
      if (event.type === "session.created" && !(about.info && about.info.parentID))
        run(WORDS.START, { session_id, hook_event_name: "SessionStart", source: "startup" })
      if (event.type === "session.idle") run(WORDS.DRAIN, { session_id, hook_event_name: "Stop" })
      if (event.type === "session.compacted") run(WORDS.DRAIN, { session_id, hook_event_name: "PostCompact" })
      if (event.type === "session.error") run(WORDS.DRAIN, { session_id, hook_event_name: "StopFailure" })
    },
    "chat.message": async (about, { parts }) => {
      const said = (parts || []).filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      const prompt = said.join("\n").replace(/^"([^"]*)"\s*$/, "$1") // the quotes that `opencode run` puts around it
      run(WORDS.PROMPT, { session_id: about.sessionID, hook_event_name: "UserPromptSubmit", prompt })
    },
    "tool.execute.before": async (about) => {
      const call = { session_id: about.sessionID, tool_name: about.tool, tool_use_id: about.callID }
      run(WORDS.TOOL, { ...call, hook_event_name: "PreToolUse" })
    },
    "tool.execute.after": async (about, result) => {
      const call = { session_id: about.sessionID, tool_name: about.tool, tool_use_id: about.callID }
      run(WORDS.TOOL, { ...call, hook_event_name: "PostToolUse", tool_response: (result && result.output) || "" })
    },
    "experimental.session.compacting": async (about) => {
      run(WORDS.DRAIN, { session_id: about.sessionID, hook_event_name: "PreCompact" })
    },
    "experimental.chat.system.transform": async (about, { system }) => {
      for (const text of context.get(about.sessionID) || []) system.push(text)
    },
  }
}
