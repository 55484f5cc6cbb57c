"""The archive behind the interfaces of agent frameworks, one file each. Each needs its framework, which is not ours to install.

    langgraph        checkpoints of graphs                  ArchiveSaver(archive)
    openai_agents    items of a session                     ArchiveSession("id", archive)
    tool_journal     the tools of a run, begun and ended    ToolJournal(archive, "id")
    agent_sdk        transcripts, mirrored and searchable   TranscriptStore(archive, fold)
    pydantic_ai      conversations with branches            ArchiveConversations(archive)
    mcp_events       events of a server, to be replayed     ArchiveEvents(archive)

All of them take an `Archive`, or the path or URL of one: the connection belongs to one thread, which does the work of every
thread and every event loop that asks. When a method returns, what it wrote is durable.
"""

from everturn.integrations.archive import Archive

__all__ = ["Archive"]
