package api

// HistoryStatus says how far the history of the cluster is.
type HistoryStatus struct {
	// Kind is HistoryStatus.
	Kind string `json:"kind" oneof:"HistoryStatus"`
	// Coordinator is the coordinator that answers.
	Coordinator string `json:"coordinator" example:"c1"`
	// Projector is the part of this coordinator in the history: Projecting writes it,
	// Starting has been elected and looks for its place, Waiting leaves it to another.
	Projector string `json:"projector" oneof:"Projecting,Starting,Waiting" example:"Projecting"`
	// Reason is why a projector is Starting, where it waits.
	Reason string `json:"reason,omitempty" example:"coordinator c2 has revisions 107 to 421 in its spool; without it there is a gap at 2026-03-01T13:00:00Z"`
	// Database names the database, without any secret; absent while it was not reached yet.
	Database string `json:"database,omitempty" example:"PostgreSQL muster at db.example.org"`
	// DatabaseFault is the reason why the database does not answer; absent where it does.
	DatabaseFault string `json:"databaseFault,omitempty" example:"connection refused"`
	// DatabaseFaultSince is the time since which the database does not answer.
	DatabaseFaultSince string `json:"databaseFaultSince,omitempty" format:"time" example:"2026-03-01T12:00:00Z"`
	// Revision is the revision of the store up to which the database has the history.
	Revision int64 `json:"revision" example:"4711"`
	// StoreRevision is the present revision of the store.
	StoreRevision int64 `json:"storeRevision" example:"4720"`
	// DurableRevision is the revision up to which the history is in the database or in a
	// spool.
	DurableRevision int64 `json:"durableRevision" example:"4711"`
	// SpoolOwner is the coordinator that has the last part of the history in its spool;
	// absent where all is in the database.
	SpoolOwner string `json:"spoolOwner,omitempty" example:"c2"`
	// SpoolBytes is the size of the spool of the coordinator that answers.
	SpoolBytes int64 `json:"spoolBytes" unit:"bytes" example:"0"`
	// SpoolBatches is the number of batches in that spool.
	SpoolBatches int `json:"spoolBatches" unit:"batches" example:"0"`
	// Gaps are the ranges of revisions that the history does not have, the newest last.
	Gaps []HistoryGap `json:"gaps,omitempty"`
}

// HistoryGap is a range of revisions whose changes the history does not have.
type HistoryGap struct {
	// From is the first revision of the range.
	From int64 `json:"from" example:"107"`
	// To is the last revision of the range.
	To int64 `json:"to" example:"421"`
	// Time is the time of the newest change before the history went on.
	Time string `json:"time,omitempty" format:"time" example:"2026-03-01T13:00:00Z"`
	// Reason is why the changes are missing.
	Reason string `json:"reason" example:"the store was compacted at revision 423"`
}

// HistoryReport is a comparison of the history with the store.
type HistoryReport struct {
	// Kind is HistoryReport.
	Kind string `json:"kind" oneof:"HistoryReport"`
	// Revision is the revision that both were compared at.
	Revision int64 `json:"revision" example:"4711"`
	// Rows is the number of rows that were compared.
	Rows int `json:"rows" unit:"rows" example:"1200"`
	// Total is the number of differences.
	Total int `json:"total" unit:"differences" example:"1"`
	// Differences are the first 1000 differences.
	Differences []HistoryDifference `json:"differences,omitempty"`
}

// HistoryDifference is one row that is not in the history as the store has it.
type HistoryDifference struct {
	// Object is the kind of the row: node, condition, job, allocation, grant, wait, quota,
	// preemption, audit or slice.
	Object string `json:"object" example:"allocation"`
	// Key is the key of the row.
	Key string `json:"key" example:"alloc-00000000000000a1-1"`
	// Field is the field that differs; absent where one side has no row.
	Field string `json:"field,omitempty" example:"state"`
	// History is the value in the history; "present" where the history alone has the row.
	History string `json:"history,omitempty" example:"Running"`
	// Store is the value in the store; "present" where the store alone has the row.
	Store string `json:"store,omitempty" example:"Cancelled"`
}

// HistoryRetention says which rows of the history are older than the periods for which
// their kinds are kept.
type HistoryRetention struct {
	// Kind is HistoryRetention.
	Kind string `json:"kind" oneof:"HistoryRetention"`
	// DryRun says that nothing was removed.
	DryRun bool `json:"dryRun" example:"true"`
	// Tables are the tables with rows of limited age, in the order in which rows go.
	Tables []HistoryTable `json:"tables"`
}

// HistoryTable is a table of the history with the rows that go.
type HistoryTable struct {
	// Object is the kind of the rows.
	Object string `json:"object" example:"heartbeats"`
	// Table is the name of the table.
	Table string `json:"table" example:"node_heartbeats"`
	// Before is the time before which rows go.
	Before string `json:"before" format:"time" example:"2026-03-01T12:00:00Z"`
	// Rows is the number of rows that go one by one.
	Rows int64 `json:"rows" unit:"rows" example:"1200"`
	// Detached are the months that leave the table as a whole and stay for 30 days as
	// tables of their own.
	Detached []string `json:"detached,omitempty" example:"[node_heartbeats_2026_01]"`
	// Dropped are the months that left the table 30 days ago, and go now.
	Dropped []string `json:"dropped,omitempty" example:"[node_heartbeats_2025_12]"`
}
