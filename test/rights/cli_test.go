package rights

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/cmd/muster/cli"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/sdk"
)

// commandLines are runs of the command line, by the command. TENANT is the tenant, TOKEN
// the id of a token of the tenant, and FILE/ the folder with a document of each kind.
// Each run asks the server something. No command patches the kinds that apply replaces, reads
// one token, or watches tokens and notices of evictions: those rows have no door CLI.
var commandLines = map[string][]string{
	"annotate":               {"node thing a=b", "job thing a=b -n TENANT", "allocation thing a=b -n TENANT"},
	"api-resources":          nil,
	"apply":                  {"-f FILE/job -n TENANT", "-f FILE/quotatree", "-f FILE/tenant", "-f FILE/namespace", "-f FILE/rolebinding", "-f FILE/queue", "-f FILE/priorityclass", "-f FILE/resource", "-f FILE/quotaforest", "-f FILE/quotabinding", "-f FILE/resourcequota -n TENANT"},
	"audit":                  {""},
	"history status":         {""},
	"history verify":         {""},
	"history rebuild":        {""},
	"history prune":          {""},
	"ca operator":            {"thing --dir FILE/operator"},
	"ca operators":           {""},
	"ca retire":              {"0123456789abcdef"},
	"ca revoke-operator":     {"thing"},
	"ca rotate":              {""},
	"ca show":                {""},
	"boost":                  {"thing --priority 500 --for 1h -n TENANT"},
	"cancel":                 {"thing -n TENANT"},
	"config current-context": nil, "config delete-context": nil, "config get-contexts": nil, "config set-context": nil, "config use-context": nil, "config view": nil,
	"cordon":          {"thing"},
	"decisions check": nil,
	"decisions show":  nil,
	"delete":          {"job thing -n TENANT", "allocation thing -n TENANT", "node thing", "tenant TENANT", "namespace TENANT", "rolebinding TENANT.readers", "allocations -l a=b -n TENANT", "queue thing", "priorityclass thing", "resource thing", "quotaforest thing"},
	"describe":        {"job thing -n TENANT", "allocation thing -n TENANT", "node thing", "tenant TENANT", "namespace TENANT", "rolebinding TENANT.readers", "resourcequota thing -n TENANT", "quotatree thing"},
	"doctor":          nil, // looks at this host
	"docs man":        nil, // writes pages
	"drain":           {"thing"},
	"events":          {"-n TENANT", "-A", "-n TENANT -w", "-A -w"},
	"explain":         nil, // knows the fields by itself
	"fence":           {"thing"},
	"get": {"jobs -n TENANT", "allocations -n TENANT", "jobs -A", "nodes", "tenants", "namespaces", "tenant TENANT", "namespace TENANT", "rolebindings", "rolebinding TENANT.readers", "quotatrees", "quotaforests", "quotabindings", "quotabinding TENANT", "resourcequotas -n TENANT", "events -n TENANT", "event thing -n TENANT", "job thing -n TENANT", "jobs -n TENANT -w", "nodes -w",
		"allocations -A", "resourcequotas -A", "allocations -n TENANT -w", "resourcequotas -n TENANT -w", "jobs -A -w", "allocations -A -w", "resourcequotas -A -w", "tenants -w", "namespaces -w", "rolebindings -w",
		"quotatrees -w", "quotaforests -w", "quotabindings -w", "queues", "queue thing", "queues -w", "priorityclasses", "priorityclass thing", "priorityclasses -w", "resources", "resource thing", "resources -w"},
	"logs":                {"thing --member 0 -n TENANT", "-f thing --member 0 -n TENANT"},
	"attach":              {"thing -n TENANT"},
	"exec":                {"thing -n TENANT -- true"},
	"run":                 {"-n TENANT -- true"},
	"kubelet pool":        {"thing", "thing --add GPU-0 --wait=false"},
	"label":               {"node thing a=b", "job thing a=b -n TENANT", "allocation thing a=b -n TENANT"},
	"login":               nil, // asks no right
	"logout":              nil,
	"metrics cluster":     {""},
	"metrics queues":      {""},
	"metrics tenant":      {"TENANT"},
	"node approve":        {"thing"},
	"node ban":            {"thing"},
	"node bans":           {""},
	"node create":         {"thing"},
	"node evictions":      {"thing"},
	"node limit":          {"thing cpu=1"},
	"node unban":          {"thing"},
	"preempt":             {"thing -n TENANT"},
	"quota apply":         {"-f FILE/quotatree", "-f FILE/resourcequota -n TENANT", "-f FILE/quotabinding"},
	"quota delete":        {"tree thing", "rq thing -n TENANT", "binding TENANT"},
	"quota explain":       {"thing -n TENANT"},
	"quota get":           {"tree thing", "rq -n TENANT", "forest thing"},
	"quota mode":          {"", "Normal"},
	"cluster level":       {""}, // --raise reads first, and the newest level is 0
	"quota reclaim":       {"thing --yes"},
	"quota rename":        {"thing a b"},
	"quota replay":        nil, // computes by itself
	"simulate":            nil, // computes by itself
	"snapshot":            {"--file -"},
	"quota what-if":       {"-f FILE/consumer"},
	"reconcile":           {"thing"},
	"resume":              {"job thing -n TENANT", "allocation thing -n TENANT"},
	"status":              {""},
	"submit":              {"-f FILE/job -n TENANT", "-f FILE/allocation -n TENANT", "-f FILE/quotatree", "-f FILE/rolebinding"},
	"suspend":             {"job thing -n TENANT", "allocation thing -n TENANT"},
	"taint":               {"node thing a=b:NoSchedule"},
	"token create":        {"--user bob --role viewer --tenant TENANT", "--node gpu-9"},
	"token list":          {"", "--bootstrap"},
	"token revoke":        {"TOKEN", "abcdef"},
	"token rotate":        {"TOKEN"},
	"top":                 {"-n TENANT", "--jobs -n TENANT"},
	"uncordon":            {"thing"},
	"usage":               {"--tenant TENANT"},
	"history allocations": {""}, "history events": {""}, "history preemptions": {""},
	"history import-slots": nil, // works on a database by its own address
	"version":              nil,
	"whoami":               {""},
	"why":                  {"thing -n TENANT", "allocation/thing -n TENANT"},
}

// readBefore are the stored objects for the commands that read, and then ask for more: what
// they ask for depends on the answer.
var readBefore = map[string][]func(*http.Request) (int, []byte){
	"annotate":     {anotherStored},
	"apply":        {nothingStored, anotherStored},
	"events":       {nothingListed},
	"get":          {nothingListed},
	"label":        {anotherStored},
	"node approve": {anotherStored},
	"quota apply":  {nothingStored, anotherStored},
	"taint":        {anotherStored},
}

// leaves are the commands that do something, by the words behind muster.
func leaves(c *cobra.Command, words []string) (all []string) {
	for _, sub := range c.Commands() {
		if sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		path := append(slices.Clone(words), sub.Name())
		if sub.HasSubCommands() {
			all = append(all, leaves(sub, path)...)
		} else {
			all = append(all, strings.Join(path, " "))
		}
	}
	return all
}

// askCLI runs every command as every role. The program exits with 1 and prints the words
// of the server where its first request was refused.
func askCLI(t *testing.T, h *house, see func(door, asked) answers) {
	for _, leaf := range leaves(cli.New(cli.Program{}), nil) {
		if _, listed := commandLines[leaf]; !listed {
			t.Errorf("muster %s is in no line of commandLines: add the command, with nil where no coordinator is asked", leaf)
		}
	}
	folders := map[string]string{own: documents(t, own), other: documents(t, other)}
	h.take()
	for command, lines := range commandLines {
		for _, line := range lines {
			h.askLine(t, folders, command, line, see)
			for _, stored := range readBefore[command] {
				h.pretends(stored)
				h.askLine(t, folders, command, line, see)
			}
			h.pretends(nil)
		}
	}
}

// askLine runs one command line about each tenant as every role.
func (h *house) askLine(t *testing.T, folders map[string]string, command, line string, see func(door, asked) answers) {
	tenants := []string{own, other}
	if !strings.ContainsAny(line, "TF") { // about no tenant
		tenants = tenants[:1]
	}
	for _, tenant := range tenants {
		text := strings.NewReplacer("TENANT", tenant, "TOKEN", h.ids[tenant], "FILE/", folders[tenant]+"/").Replace(command + " " + line)
		for _, role := range who {
			h.runAs(t, role, tenant, strings.Fields(text), see)
		}
	}
}

// Each kind of the table of rights can be asked for in the audit, for each may be refused.
func TestTheAuditHasEachKind(t *testing.T) {
	for _, r := range service.Rights() {
		var complaint bytes.Buffer
		env := map[string]string{"MUSTER_ADDR": "http://127.0.0.1:1", "MUSTER_TOKEN": "x", "MUSTER_CONTEXT": filepath.Join(t.TempDir(), "context.json")}
		p := cli.Program{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &complaint, Env: func(k string) string { return env[k] }, Args: []string{"audit", "--for", string(r.Kind)}}
		if code := p.Run(t.Context()); code == cli.ExitMisused {
			t.Errorf("muster audit --for %s: %s", r.Kind, complaint.String())
		}
	}
}

// nothingStored is the answer to a read where no object is stored.
func nothingStored(*http.Request) (int, []byte) {
	return http.StatusNotFound, []byte(`{"kind":"Status","code":404,"reason":"NotFound","message":"not found"}`)
}

// nothingListed is the answer to a list where there is no object: a watch goes on behind it.
func nothingListed(r *http.Request) (int, []byte) {
	for _, k := range sdk.Kinds {
		if strings.HasSuffix(r.URL.Path, "/"+k.Plural) {
			return http.StatusOK, fmt.Appendf(nil, `{"kind":%q,"metadata":{"resourceVersion":"7"},"items":[]}`, k.Document+"List")
		}
	}
	return nothingStored(r)
}

// anotherStored is the answer where the object has another label than the document, and
// the node waits for its approval.
func anotherStored(r *http.Request) (int, []byte) {
	if strings.Contains(r.URL.Path, "/nodes/") {
		return http.StatusOK, []byte(`{"kind":"Node","metadata":{"name":"thing","resourceVersion":"7"},"status":{"conditions":[{"type":"AwaitingApproval","status":"True"}]}}`)
	}
	for _, k := range sdk.Kinds {
		if !strings.Contains(r.URL.Path, "/"+k.Plural+"/") {
			continue
		}
		tenant := own
		if strings.Contains(r.URL.Path, other) {
			tenant = other
		}
		return http.StatusOK, []byte(strings.Replace(string(document(k, tenant)), `"metadata":{`, `"metadata":{"labels":{"old":"yes"},"uid":"u-1","resourceVersion":"7",`, 1))
	}
	return nothingStored(r)
}

// runAs runs the program once.
func (h *house) runAs(t *testing.T, role, tenant string, args []string, see func(door, asked) answers) {
	t.Helper()
	var out, complaint bytes.Buffer
	env := map[string]string{"MUSTER_ADDR": h.url, "MUSTER_TOKEN": h.tokens[role], "MUSTER_CONTEXT": filepath.Join(t.TempDir(), "context.json")}
	code := cli.Program{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &complaint, Env: func(k string) string { return env[k] }, Args: args}.Run(t.Context())
	p := inOwn
	if tenant == other {
		p = inOther
	}
	what := "muster " + strings.Join(args, " ")
	if !h.wasAsked() {
		t.Errorf("%s as %s asks the server nothing: %s%s", what, role, out.String(), complaint.String())
	}
	switch refused := h.checkAnswers(t, byCLI, what, role, p, see); {
	case code == cli.ExitMisused:
		t.Errorf("%s: wrong usage: %s", what, complaint.String())
	case refused && code != cli.ExitFailed:
		t.Errorf("%s as %s: refused, and the program exits with %d: %s%s", what, role, code, out.String(), complaint.String())
	}
}

// documents writes a document of each kind into a folder.
func documents(t *testing.T, tenant string) string {
	folder := t.TempDir()
	for _, k := range sdk.Kinds {
		if err := os.WriteFile(filepath.Join(folder, k.Name), document(k, tenant), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "consumer"), []byte(`{"kind":"Consumer","metadata":{"name":"c"},"spec":{"id":"c","trees":[{"treeName":"a","groupID":"b","request":{"cpu":1}}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}
