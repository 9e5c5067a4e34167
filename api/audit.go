package api

// KindAuditEntry is the kind of an entry of the audit.
const KindAuditEntry = "AuditEntry"

// Results of an AuditEntry.
const (
	AuditDone    = "done"
	AuditRefused = "refused"
)

// AuditEntry is a change by a person, in the store for 25 hours and in every coordinator, or
// a refused request, in a file of the coordinator that has refused the request.
type AuditEntry struct {
	// APIVersion is the version of the entry's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" default:"AuditEntry" oneof:"AuditEntry"`
	// ID names the entry. Ids sort by time.
	ID string `json:"id" example:"1772366400000-k7wq2n4pzr"`
	// Time is the time of the request.
	Time string `json:"time" format:"time" example:"2026-03-01T12:00:00.125Z"`
	// Person is the user of the token or certificate; absent where the request had neither.
	Person string `json:"person,omitempty" example:"ada@example.org"`
	// Token is the id of the access token; absent for the administrator's token.
	Token string `json:"token,omitempty" example:"at-5d1f09c2ab"`
	// Tenant is the person's tenant; absent for a role in the whole cluster.
	Tenant string `json:"tenant,omitempty" example:"vision"`
	// Verb is the action, as in the table of roles.
	Verb string `json:"verb,omitempty" example:"delete"`
	// Resource is the kind of the object, as in the paths of REST.
	Resource string `json:"resource,omitempty" example:"allocations"`
	// Namespace is the namespace of the object; absent for an object in none.
	Namespace string `json:"namespace,omitempty" example:"vision-dev"`
	// Name is the name of the object; absent for a request about several objects.
	Name string `json:"name,omitempty" example:"train-0"`
	// RequestID is the id of the request, as the answer and the logs have it.
	RequestID string `json:"requestId,omitempty" example:"vfbgtjaeezvptandc2taeuy6gp"`
	// Address is the client's address.
	Address string `json:"address,omitempty" example:"10.0.0.17:40212"`
	// Via is the coordinator that has passed the request on to the leader; absent where the
	// client has asked the leader itself.
	Via string `json:"via,omitempty" example:"coordinator-2"`
	// Result is done for a change, and refused for a request that had no effect.
	Result string `json:"result" oneof:"done,refused" example:"done"`
	// Code is the HTTP status of a refused request.
	Code int `json:"code,omitempty" range:"401..429" example:"403"`
	// Reason is the sentence of a refusal.
	Reason string `json:"reason,omitempty" example:"delete allocations in namespace vision-dev: want the role editor"`
	// Count is the number of requests alike in the entry; absent for a single request.
	Count int64 `json:"count,omitempty" example:"12"`
	// Coordinator is the coordinator that has refused the request; absent for a change.
	Coordinator string `json:"coordinator,omitempty" example:"coordinator-1"`
}

// AuditEntryList is a list of entries, the newest first.
type AuditEntryList struct {
	// Kind is AuditEntryList.
	Kind string `json:"kind" oneof:"AuditEntryList"`
	// Metadata has the token of the next page, whose entries are older.
	Metadata ListMeta `json:"metadata"`
	// Items are the entries.
	Items []AuditEntry `json:"items"`
}
