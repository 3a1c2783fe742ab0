from tool_search.stores.sqlite.store import SQLiteStore as SQLiteStore
