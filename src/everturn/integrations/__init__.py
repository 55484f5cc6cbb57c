"""The archive behind the interfaces of agent frameworks, one module each. Each needs its framework installed.

    langgraph        checkpoints of graphs                  ArchiveSaver(archive)
    openai_agents    items of a session                     ArchiveSession("id", archive)
    tool_journal     the tool calls of a run                ToolJournal(archive, "id")
    agent_sdk        transcripts, mirrored and searchable   TranscriptStore(archive, fold)
    pydantic_ai      conversations with branches            ArchiveConversations(archive)
    mcp_events       events of a server, for replay         ArchiveEvents(archive)

All of them take an `Archive`, or its path or URL. One thread holds the connection and works for every thread and event
loop. When a method returns, its writes are durable.
"""

from everturn.integrations.archive import Archive

__all__ = ["Archive"]
