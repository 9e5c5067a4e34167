package deadcode

// kept are the unreached functions to keep, with the reason: the caller, or the rule of the
// language behind the function.
var kept = map[string]string{
	"cmd/muster/alone.Cluster.addNode": "called by New",
	"cmd/muster/alone.New":             "test/philly, benchmarks of coordinator/lead and its own tests run clusters of it",
	"cmd/muster/alone.NewAgent":        "test/resttest serves nodes of it",
	"cmd/muster/cli.New":               "test/rights and the reference of muster read the tree of commands",

	"coordinator/access.secretText.GoString": "a token that is printed by mistake stays hidden; no code prints one",
	"coordinator/access.secretText.String":   "as GoString",
	"coordinator/decisions.Checker.Record":   "test/rig holds the decisions of each of its clusters to the checker, without a file",
	"coordinator/decisions.nothing.Sum":      "ranked.Tree asks its values for Sum; the sums of no amounts are not computed",
	"coordinator/queue.Unit.Sum":             "as nothing.Sum",
	"coordinator/rest.Routes":                "coordinator/rest/restdoc and test/rights hold the registered routes to their texts and rights",
	"coordinator/rest.access.everywhere":     "called by Routes",
	"coordinator/service.Rights":             "test/rights tries each right of the table over each interface",

	"grant.Edges":        "tests of agent/ledger and test/docs hold code and PROTOCOL.md to the table of states",
	"grant.RecordEdges":  "as Edges",
	"wire/limits.Decode": "fuzz targets of agent/rpc, coordinator/agents and coordinator/rpc read bytes as the edges do",
}
