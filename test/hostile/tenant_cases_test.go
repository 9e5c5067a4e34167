package hostile

import (
	"maps"
	"time"
)

// documentCopies is how many times a coordinator has a stored document in memory, at
// most: the leader's, that of the reader of the store, and as much again until the
// collector comes; and once in the store, where it is embedded.
const documentCopies = 5

// tenantCases are the attacks of a tenant with its own token (group T of the list of
// faults), by what happens. The honest client is of another tenant.
var tenantCases = map[string]attack{
	"the objects of another tenant": {
		row: "T1", level: a2, mode: "others-objects", coordinators: both, short: true, shortOn: three,
		want:  []string{"object of another: 404", "object that is not there: 404", "own sight: 200", "all tenants: 403"},
		never: []string{"answers differ", "a name of another is shown", "object of another: 2", "object of another: 5", "all tenants: 2"},
		said:  []string{"namespace default not found", "namespace nobody not found"}, after: victimIsUntouched,
	},
	"tokens that let nobody in": {
		row: "T2", level: a2, mode: "bad-tokens", coordinators: both, short: true, shortOn: three,
		want: []string{
			"forged: 401", "revoked: 401", "expired: 401", "of a token that was never made: 401", "of a host: 401", "two tokens: 401", "no token: 401", "no scheme: 401", "viewer: 403", "editor of another tenant: 404",
			"forged over gRPC: Unauthenticated", "revoked over gRPC: Unauthenticated", "expired over gRPC: Unauthenticated", "two tokens over gRPC: Unauthenticated", "no token over gRPC: Unauthenticated",
			"viewer over gRPC: PermissionDenied", "editor of another tenant over gRPC: NotFound",
		},
		never: []string{"forged: 2", "revoked: 2", "expired: 2", "two tokens: 2", "viewer: 2", "of a host: 2", "editor of another tenant: 2", "forged over gRPC: OK", "revoked over gRPC: OK", "viewer over gRPC: OK"},
		after: nothingWasMade,
	},
	"priorities above the ceiling, and rights of others": {
		row: "T3", level: a2, mode: "high-priority", coordinators: both, short: true, shortOn: one,
		want:  []string{"priority: 403", "rights: 403", "job to boost: 201", "boost: 403"},
		never: []string{"priority: 2", "priority: 4 ", "priority: 5", "rights: 2", "rights: 5", "boost: 2"},
		said:  []string{"1000"}, after: nothingWasMade,
	},
	"documents that no document is": {
		row: "T4", level: a2, mode: "bad-documents", coordinators: both, short: true, shortOn: one,
		want:  []string{"document: 400", "document: 422"},
		may:   []string{"document: 429", "document: 413"}, // the largest use up the share of work; aliases are written out where some is left
		never: []string{"document: 2", "document: 5", "document: no answer"}, after: nothingWasMade,
	},
	"100,000 requests with a good token on one connection": {
		row: "T5", level: a2, mode: "streams-with-token", coordinators: both, short: true, shortOn: one, want: []string{streamsLimited}, after: attackerIsWhole,
	},
	"100,000 requests with a good token, reset at once": {
		row: "T5", level: a2, mode: "reset-with-token", coordinators: one, want: []string{streamsLimited}, after: attackerIsWhole,
	},
	"watches that nobody reads, until they are cut": {
		row: "T6", level: a2, spoils: true, mode: "stalled-watches", coordinators: one, lasts: 15 * time.Second, lastsLong: 30 * time.Second, after: attackerIsWhole,
	},
	"bodies that never come, until they are cut": {
		row: "T6", level: a2, mode: "slow-bodies", coordinators: one, short: true, lasts: 12 * time.Second, lastsLong: 20 * time.Second,
		// A connection beyond those of one address is closed without an answer.
		want: []string{"stalled: HTTP/1.1 400"}, may: []string{"stalled: closed by the server"}, after: attackerIsWhole,
	},
	"paths that no client sends": {
		row: "T7", level: a2, mode: "odd-paths", coordinators: both, short: true, shortOn: one, want: []string{"path: 400", "path: 404"},
		never: []string{"path: 1", "path: 2", "path: 3", "path: 5"}, after: victimIsUntouched,
	},
	"the Idempotency-Key of another tenant": {
		row: "T8", level: a2, mode: "keys-of-others", coordinators: both, short: true, shortOn: three,
		want:  []string{"key of another: 201", "key again: 200", "key for another document: 409", "key of 300 bytes: 400", "key with a blank: 400"},
		never: []string{"an object of another is shown", "key of another: 4", "key for another document: 2", "key of 300 bytes: 2", "key with a blank: 2"},
		said:  []string{"was used for another document"}, after: victimIsUntouched,
	},
	"doors for operators and developers": {
		row: "T10", level: a2, mode: "debugging-doors", coordinators: both, short: true, shortOn: one, want: []string{"door: 403", "door: 404"}, never: []string{"door: 2", "door: 5"},
	},
	"400 watches of one user": {
		row: "T11", level: a2, mode: "many-watches", coordinators: both, short: true, shortOn: one, want: []string{"watch: 200", "watch: 429"}, never: []string{"watch: 500"},
		said: []string{"user mallory of tenant hostile has 128 watches, and 1 more are beyond the limit of 128"}, after: attackerIsWhole,
	},
	"400 requests of one user that wait": {
		row: "T11", level: a2, mode: "many-waits", coordinators: both, want: []string{"wait: 429"}, never: []string{"wait: 500"},
		said: []string{"user mallory of tenant hostile has 256 requests that wait"}, after: attackerIsWhole,
	},
	"600 watches of one user over gRPC": {
		row: "T11", level: a2, spoils: true, mode: "many-grpc-watches", coordinators: one, want: []string{"watch: OK", "watch: ResourceExhausted"}, never: []string{"watch: Internal"}, keeps: 128 << 20, after: attackerIsWhole,
	},
	"Idempotency-Keys without end": {
		row: "T11", level: a2, mode: "many-keys", coordinators: both, want: []string{"create with a key: 201", "delete: 200"}, may: []string{"create with a key: 409", "delete: 404"}, never: []string{"create with a key: 500"}, keeps: 16 << 20, after: attackerIsWhole,
	},

	// Beside the rows: what else a tenant has.
	"objects without end": {
		row: "T11", level: a2, spoils: true, mode: "many-objects", coordinators: both, lastsLong: 30 * time.Second, want: []string{"create: 201"}, may: []string{"create: 429"}, never: []string{"create: 500"}, keeps: 10_000 * 20 << 10,
	},
	"documents of 256 KiB without end": {
		row: "T4", level: a2, spoils: true, mode: "giant-documents", coordinators: both, lasts: 6 * time.Second, lastsLong: 20 * time.Second, want: []string{"create: 201", "create: 429"}, never: []string{"create: 500"},
		said: []string{"Tenant 'hostile' has used up its share of work"}, keeps: 64 << 20 * documentCopies,
	},
	"annotations of 60 KiB that change without end": {
		row: "T4", level: a2, mode: "annotation-floods", coordinators: both, want: []string{"patch: 200"}, may: []string{"patch: 429"}, never: []string{"patch: 500"}, after: attackerIsWhole,
	},
	"selectors of 800 values": {
		row: "T11", level: a2, spoils: true, mode: "selector-floods", coordinators: one, want: []string{"list: 200"}, may: []string{"list: 429"}, never: []string{"list: 500"}, slowest: 150 * time.Millisecond,
	},
	"continue tokens that no answer had": {
		row: "T1", level: a2, mode: "continue-floods", coordinators: one, want: []string{"list: 400"}, may: []string{"list: 429"}, never: []string{"list: 2", "list: 500"}, spoils: true,
	},
	"why without end": {
		row: "T11", level: a2, spoils: true, mode: "why-floods", coordinators: both, want: []string{"why: 200"}, may: []string{"why: 429"}, never: []string{"why: 500"}, slowest: 150 * time.Millisecond,
	},
	"dry runs without end": {
		row: "T11", level: a2, mode: "dry-run-floods", coordinators: both, want: []string{"dry run: 200"}, may: []string{"dry run: 429"}, never: []string{"dry run: 500"}, slowest: 150 * time.Millisecond,
	},
	"YAML of 900 KB": {
		row: "T4", level: a2, spoils: true, mode: "yaml-floods", coordinators: one, want: []string{"YAML: 413"}, may: []string{"YAML: 429"}, never: []string{"YAML: 2", "YAML: 500"}, keeps: 64 << 20, slowest: 150 * time.Millisecond,
	},
	"YAML whose aliases stand for a million values": {
		row: "T4", level: a2, mode: "yaml-aliases", coordinators: both, short: true, shortOn: one, want: []string{"aliases: 413", "aliases: 429"}, never: []string{"aliases: 2", "aliases: 5"},
		said: []string{"Tenant 'hostile' has used up its share of work"}, keeps: 64 << 20, after: attackerIsWhole,
	},
	"jobs of 1,000 members without end": {
		row: "T11", level: a2, spoils: true, mode: "many-members", coordinators: both, short: true, shortOn: one, want: []string{"large job: 201", "large job: 429"}, never: []string{"large job: 5"},
		said: []string{"Tenant 'hostile' has used up its share of work"}, keeps: 512 << 20, slowest: 150 * time.Millisecond,
	},
	"1,000 members more and fewer without end": {
		row: "T11", level: a2, spoils: true, mode: "member-floods", coordinators: one, want: []string{"members: 200", "members: 429"}, never: []string{"members: 5"},
		keeps: 512 << 20, slowest: 150 * time.Millisecond,
	},
	"large pages that everybody may read": {
		row: "T11", level: a2, mode: "page-floods", coordinators: both, want: []string{"page: 200"}, may: []string{"page: 429"}, never: []string{"page: 500"}, slowest: 150 * time.Millisecond,
	},
	"lists over gRPC without end": {
		row: "T11", level: a2, spoils: true, mode: "grpc-floods", coordinators: one, want: []string{"list: OK"}, may: []string{"list: ResourceExhausted"}, never: []string{"list: Internal"}, slowest: 150 * time.Millisecond,
	},
}

// alsoCovers names the rows of group T that the cases of a hostile host cover.
var alsoCovers = map[string][]string{
	"a node that speaks for another":               {"T9"},
	"a registration of another node":               {"T9"},
	"a heartbeat of another node":                  {"T9"},
	"a vote for all members of a gang":             {"T9"},
	"a Yes with more than was asked":               {"T9"},
	"a body of 64 MB":                              {"T5"},
	"a body that unpacks to 200 MB":                {"T5"},
	"2,000 headers":                                {"T5"},
	"headers without an end to the REST API":       {"T5"},
	"300 requests whose headers never end":         {"T6"},
	"a document of 100,000 levels":                 {"T4"},
	"an object with 60,000 labels":                 {"T4"},
	"jobs that never fit, without end":             {"T11"},
	"32 clients that list all the time":            {"T11"},
	"a Yes with a GPU that the node does not have": {"T9"},
}

// all are the cases of both tables.
var all = func() map[string]attack {
	whole := maps.Clone(cases)
	maps.Copy(whole, tenantCases)
	return whole
}()
