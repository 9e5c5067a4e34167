package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/reference"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/rest/restdoc"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/fresh"
	"github.com/musterd/muster/test/resttest"
)

// alone is the roster of a cluster with one coordinator.
type alone struct{}

func (alone) Self() api.Coordinator {
	return api.Coordinator{ID: "coordinator-1", Role: api.LeaderRole, Epoch: 1}
}
func (a alone) Candidates() []api.Coordinator { return []api.Coordinator{a.Self()} }

// tenantToken is that of a tenant who is no admin.
const tenantToken = "t3nant"

// callers are an admin and a tenant.
type callers struct{ service.Authenticator }

func (c callers) Authenticate(ctx context.Context, given string) (service.Principal, error) {
	if given == tenantToken {
		return service.Principal{Name: "vision", Tenant: "vision", Proof: api.ProofAccessToken}, nil
	}
	return c.Authenticator.Authenticate(ctx, given)
}

// credentials have the token and the binding of the examples.
func credentials(t *testing.T) service.Credentials {
	t.Helper()
	token := record.AccessToken{
		ID: "at-5d1f09c2ab", User: "ada@example.org", Creator: "admin", Created: "2026-03-01T12:00:00Z",
		Secrets: []record.TokenSecret{{SHA256: strings.Repeat("0", 64), Created: "2026-03-01T12:00:00Z"}},
	}
	binding := record.Object{
		UID: "rolebinding-1", Name: "vision.editors", Created: "2026-03-01T12:00:00Z",
		Document: []byte(`{"kind":"RoleBinding","metadata":{"name":"vision.editors"},"spec":{"role":"editor","tenant":"vision","subjects":[{"kind":"User","name":"ada@example.org"}]}}`),
	}
	return resttest.Credentials(t, record.Put(record.AccessTokenKey(token.ID), record.MustEncode(token)), record.Put(record.RoleBindingKey(binding.Name), record.MustEncode(binding)))
}

// documentedWorld serves every route, and has an object for each example.
func documentedWorld(t *testing.T) http.Handler {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	h := checkedHandler(t, rest.Config{
		Service:       resttest.New(now, resttest.Node{Name: "gpu-1", CPUs: 16, Memory: 64 << 30, GPUs: 4}),
		Authenticator: callers{service.StaticToken(token)}, Identity: resttest.Identities{}, Credentials: credentials(t), Roster: alone{}, Version: "v0.0.0-test", Past: resttest.EmptyPast{},
		Login: &api.LoginMethod{Issuer: "https://login.example.org", ClientID: "muster", Scopes: []string{"email"}},
	})
	examples := map[string]string{}
	for _, r := range restdoc.Routes() {
		examples[r.Pattern()] = r.Example
	}
	const unit = `"spec": {"resources": {"requests": {"cpu": "1"}}}`
	for _, made := range []string{
		`/api/v1/namespaces/default/allocations {"metadata": {"name": "web"}, ` + unit + `}`,
		`/api/v1/namespaces/default/jobs {"metadata": {"name": "train"}, "spec": {"template": {` + unit + `}}}`,
		strings.Replace(examples["POST /api/v1/namespaces/{namespace}/resourcequotas"], `"second"`, `"team"`, 1),
		strings.Replace(examples["POST /api/v1/quotatrees"], `"second"`, `"company"`, 1),
		strings.Replace(examples["POST /api/v1/quotatrees"], `"second"`, `"spare"`, 1),
	} {
		if answer := sendExample(h, "POST", made, token); answer.Code != http.StatusCreated {
			t.Fatalf("%s: %d %s", made, answer.Code, answer.Body)
		}
	}
	return h
}

// inForest are the examples that need a forest and a binding.
func inForest(t *testing.T, h http.Handler) {
	t.Helper()
	for _, made := range []string{
		`/api/v1/quotaforests {"kind": "QuotaForest", "metadata": {"name": "quota"}, "spec": {"trees": ["company"]}}`,
		`/api/v1/tenants {"kind": "Tenant", "metadata": {"name": "vision"}}`,
		`/api/v1/resources {"kind": "Resource", "metadata": {"name": "seat"}}`,
		`/api/v1/priorityclasses {"kind": "PriorityClass", "metadata": {"name": "release"}, "spec": {"value": 500}}`,
		`/api/v1/queues {"kind": "Queue", "metadata": {"name": "training"}}`,
		`/api/v1/resources {"kind": "Resource", "metadata": {"name": "example.com/seat"}}`,
		`/api/v1/namespaces {"kind": "Namespace", "metadata": {"name": "vision-dev"}, "spec": {"tenant": "vision-dev"}}`,
		`/api/v1/quotabindings {"kind": "QuotaBinding", "metadata": {"name": "research"}, "spec": {"groups": {"company": "all"}}}`,
	} {
		if answer := sendExample(h, "POST", made, token); answer.Code != http.StatusCreated {
			t.Fatalf("%s: %d %s", made, answer.Code, answer.Body)
		}
	}
}

// sendExample sends an example: a target and, behind a space, a body.
func sendExample(h http.Handler, method, example, bearer string) *httptest.ResponseRecorder {
	target, body, _ := strings.Cut(example, " ")
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	switch {
	case method == http.MethodPatch:
		r.Header.Set("Content-Type", "application/merge-patch+json")
	case body != "":
		r.Header.Set("Content-Type", "application/json")
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer
}

func TestEveryRouteIsDescribed(t *testing.T) {
	kinds := map[string]bool{"": true}
	for _, k := range reference.Kinds() {
		kinds[k.Name], kinds[k.Name+"List"] = true, true
	}
	registered := map[string]bool{}
	for _, r := range restdoc.Routes() {
		registered[r.Pattern()] = true
		switch {
		case r.Text == "":
			t.Errorf("%s has no text: describe it in coordinator/rest/describe_routes.go, then run make reference", r.Pattern())
		case !strings.HasSuffix(r.Text, "."), r.Code == 0, r.Example == "":
			t.Errorf("%s: want a sentence, a code and an example: %+v", r.Pattern(), r)
		case !kinds[r.Body] || !kinds[r.Answer]:
			t.Errorf("%s has the body %q and the answer %q: one is no kind of the reference", r.Pattern(), r.Body, r.Answer)
		}
	}
	for _, pattern := range restdoc.Described() {
		if !registered[pattern] {
			t.Errorf("%s is described and not served", pattern)
		}
	}
}

// elsewhere are examples that the world of the test answers otherwise, as it has no
// agents that fail and no store that was restored.
var elsewhere = map[string]int{
	"DELETE /api/v1/nodes/{name}":                      http.StatusConflict, // the agent is alive
	"GET /api/v1/events/{name}":                        http.StatusNotFound, // the name depends on the event
	"GET /api/v1/namespaces/{namespace}/events/{name}": http.StatusNotFound,

	"PATCH /api/v1/featurelevel": http.StatusConflict, // this version knows no level above 0

	"GET /api/v1/history/status": http.StatusNotFound, "GET /api/v1/history/verify": http.StatusNotFound, "POST /api/v1/history/rebuild": http.StatusNotFound, "POST /api/v1/history/prune": http.StatusNotFound, // none is kept

	"GET /api/v1/namespaces/{namespace}/jobs/{name}/logs":   http.StatusNotFound,        // nothing runs here
	"GET /api/v1/namespaces/{namespace}/jobs/{name}/exec":   http.StatusUpgradeRequired, // the test's client speaks no WebSocket
	"POST /api/v1/namespaces/{namespace}/jobs/{name}/boost": http.StatusConflict,        // no member waits
}

func TestExamplesOfRoutesAreAnsweredAsDescribed(t *testing.T) {
	for _, r := range restdoc.Routes() {
		t.Run(r.Pattern(), func(t *testing.T) {
			h := documentedWorld(t)
			path, document, _ := strings.Cut(r.Example, " ")
			if !strings.HasPrefix(r.Path, "/api/v1/quotatrees") {
				inForest(t, h)
			}
			if r.Method == http.MethodPost && r.Path == "/api/v1/quotaforests" {
				document = strings.Replace(document, "company", "spare", 1) // a tree is in one forest
			}
			answer := sendExample(h, r.Method, path+" "+document, token)
			want, other := elsewhere[r.Pattern()]
			if !other {
				want = r.Code
			}
			if answer.Code != want {
				t.Fatalf("%s %s is answered %d, want %d: %s", r.Method, r.Example, answer.Code, want, answer.Body)
			}
			if !other {
				fieldsAreOf(t, r.Answer, answer.Body.Bytes())
			}
		})
	}
}

// fieldsAreOf checks that an answer has no field that its kind has not.
func fieldsAreOf(t *testing.T, kind string, answer []byte) {
	t.Helper()
	if kind == "" {
		return
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	known := []string{"apiVersion", "kind", "metadata", "items"}
	if k, _, err := reference.Find(kind); err == nil {
		known = nil
		for _, f := range k.Fields {
			known = append(known, f.Name)
		}
	} else if !strings.HasSuffix(kind, "List") {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if !slices.Contains(known, name) {
			t.Errorf("the answer has the field %s, a %s has %v", name, kind, known)
		}
	}
}

func TestRoutesTakeTheirParametersAndNoOthers(t *testing.T) {
	h := documentedWorld(t)
	for _, r := range restdoc.Routes() {
		if !strings.HasPrefix(r.Path, "/api/") {
			continue
		}
		path, body, _ := strings.Cut(r.Example, " ")
		path, _, _ = strings.Cut(path, "?")
		answer := sendExample(h, r.Method, path+"?zzz=1 "+body, token)
		want := "takes none"
		if len(r.Parameters) > 0 {
			want = "takes " + strings.Join(r.Parameters, ", ")
		}
		if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), want) {
			t.Errorf("%s with an unknown parameter is answered %d %s, want %q", r.Pattern(), answer.Code, answer.Body, want)
		}
	}
}

func TestRoutesLetInTheirCallersAndNoOthers(t *testing.T) {
	h := documentedWorld(t)
	for _, r := range restdoc.Routes() {
		if r.Access == "anyone" {
			if answer := sendExample(h, r.Method, r.Example, ""); answer.Code != r.Code {
				t.Errorf("%s without a token: %d", r.Pattern(), answer.Code)
			}
			continue
		}
		if answer := sendExample(h, r.Method, r.Example, ""); answer.Code != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", r.Pattern(), answer.Code)
		}
		answer := sendExample(h, r.Method, r.Example, tenantToken)
		foreign := strings.Contains(r.Path, "{namespace}") || strings.Contains(r.Path, "{tenant}")
		above := r.Everywhere || r.Access != "viewer" && r.Access != "editor" && r.Access != "any token"
		switch {
		case foreign && answer.Code != http.StatusNotFound:
			t.Errorf("%s by an editor of another namespace: %d; it is for %s", r.Pattern(), answer.Code, r.Access)
		case !foreign && (answer.Code == http.StatusForbidden) != above:
			t.Errorf("%s by an editor: %d; it is for %s", r.Pattern(), answer.Code, r.Access)
		}
	}
}

// parameters are the texts of the query's parameters.
var parameters = map[string][3]string{ // type and range, default, meaning
	"wait":                  {"duration, 0s to 10m", "0s", "The time that the answer may wait for the object to run or to end."},
	"labelSelector":         {"text", "", "Shows objects with these labels: `a=b`, `a!=b`, `a in (x, y)`, `a notin (x)`, `a`, `!a`, joined by commas; at most 64."},
	"fieldSelector":         {"text", "", "Shows objects with these fields: `f=v`, `f!=v`, joined by commas. The fields are below."},
	"limit":                 {"whole number, 0 or more", "500", "The greatest number of objects of a page. 0 and numbers beyond 500 are 500. A page also ends at about 1 MiB."},
	"continue":              {"text", "", "The token of the next page, from `metadata.continue` of the page before."},
	"watch":                 {"boolean", "false", "Follows the changes in place of a list, as docs/api.md says."},
	"resourceVersion":       {"text", "", "Of a get or a list: empty for the newest state, 0 for the state that the coordinator has, a number for a state that is not older. Of a watch: the place to go on from."},
	"dryRun":                {"boolean", "false", "Shows the effect and changes nothing; `All` is true. The answer to a submission is then an Explanation, with the placement if there is one."},
	"nodes":                 {"`grouped` or `all`", "grouped", "The nodes by their reasons with the first names of each group, or also the answer of each node."},
	"allowUnknownResources": {"boolean", "false", "Keeps names of resources that are one edit away from a known name. Without it they are refused with 422."},
	"follow":                {"boolean", "false", "Goes on to the end of the job, and waits for the start of members. Without it the output ends with what there is."},
	"member":                {"whole number, 0 or more", "", "The index of one member; without it all members, and member 0 for exec."},
	"command":               {"text, several times", "", "The command, and each of its arguments in turn: 1,024 at most, of 16 KiB together. There is no shell."},
	"input":                 {"boolean", "false", "The client sends the standard input. Without it there is none."},
	"tty":                   {"boolean", "false", "The command has a terminal."},
	"rows":                  {"whole number, 0 to 65535", "0", "The rows of the terminal; 0 is not known."},
	"attach":                {"`true` or `false`", "false", "Opens a session with the member's own command, which outlives the session."},
	"from":                  {"whole number, from 0", "", "The offset in the output of the own command at which the session begins, or the next one that is kept; left out, the present end."},
	"columns":               {"whole number, 0 to 65535", "0", "The columns of the terminal; 0 is not known."},
	"term":                  {"text", "", "The kind of the terminal, which the command has as the variable TERM; at most 64 characters."},
	"gracePeriodSeconds":    {"whole number, 0 to 86400", "30", "The time that the work has to stop, in seconds; as in the body."},
	"propagationPolicy":     {"`Foreground` or `Background`", "", "As in the body."},
	"force":                 {"boolean", "false", "Ends the trust although nodes have certificates by the authority."},
	"person":                {"text", "", "Shows the requests of this user."},
	"verb":                  {"text", "", "Shows the entries with this verb of the table of roles, such as delete."},
	"resource":              {"text", "", "Shows the entries about objects of this kind, as the paths have it, such as allocations."},
	"namespace":             {"text", "", "Shows the entries about objects in this namespace."},
	"name":                  {"text", "", "Shows the entries about objects of this name."},
	"result":                {"`done` or `refused`", "", "Shows changes, or refused requests."},
	"since":                 {"time", "", "Shows the entries from this time on."},
	"until":                 {"time", "", "Shows the entries before this time."},
	"state":                 {"text", "", "Shows allocations in this phase, preemptions with this outcome, or events of this type."},
	"period":                {"duration, 1m to 366d", "24h", "The time that peaks, averages and costs are about. With a history it begins at a full hour; else it is rounded up to quarters of an hour, and begins with the leader's term."},
}

func TestParametersKeepToTheirRanges(t *testing.T) {
	h := documentedWorld(t)
	used := map[string]bool{}
	for _, r := range restdoc.Routes() {
		for _, p := range r.Parameters {
			used[p] = true
			if parameters[p] == [3]string{} {
				t.Errorf("%s takes %s, which has no text in this file", r.Pattern(), p)
			}
		}
	}
	for p := range parameters {
		if !used[p] {
			t.Errorf("no route takes %s", p)
		}
	}
	for query, want := range map[string]int{
		"allocations/web?wait=0s": 200, "allocations/web?wait=10m": 200, "allocations/web?wait=10m1s": 400, "allocations/web?wait=-1s": 400,
		"jobs?limit=0": 200, "jobs?limit=501": 200, "jobs?limit=-1": 400, "jobs?watch=true": 422, "jobs?watch=maybe": 400, "jobs?watch=false": 200,
		"allocations/web?resourceVersion=0": 200, "allocations/web?resourceVersion=1&wait=1ms": 200, "allocations/web?resourceVersion=x": 400, "jobs/train/status?resourceVersion=0": 200,
		"jobs?resourceVersion=0": 200, "jobs?resourceVersion=7": 200, "jobs?resourceVersion=x": 400, "jobs?continue=x": 400, "jobs?labelSelector=a+notin+(x),!b": 200,
	} {
		if answer := sendExample(h, "GET", "/api/v1/namespaces/default/"+query, token); answer.Code != want {
			t.Errorf("%s is answered %d, want %d: %s", query, answer.Code, want, answer.Body)
		}
	}
}

func TestTheSelectorsThatTheReferenceNamesWork(t *testing.T) {
	h := documentedWorld(t)
	at := map[string]string{
		"Allocation": "allocations", "Job": "jobs", "Node": "nodes", "ResourceQuota": "resourcequotas", "QuotaTree": "quotatrees",
		"QuotaForest": "quotaforests", "QuotaBinding": "quotabindings", "Tenant": "tenants", "Namespace": "namespaces", "RoleBinding": "rolebindings", "Event": "events", "Queue": "queues", "PriorityClass": "priorityclasses",
	}
	for kind, fields := range restdoc.FieldSelectors() {
		for _, f := range fields {
			if answer := sendExample(h, "GET", "/api/v1/"+at[kind]+"?fieldSelector="+f+"=x", token); answer.Code != http.StatusOK {
				t.Errorf("%s by %s: %d %s", kind, f, answer.Code, answer.Body)
			}
		}
	}
}

// codes are the status codes of refusals in general.
var codes = []struct {
	code          int
	meaning, next string
}{
	{400, "The URL, a parameter or the document is malformed: an unknown field, a wrong type, no JSON or YAML.", "Correct the request."},
	{401, "The token is missing or unknown.", "Send `Authorization: Bearer TOKEN`."},
	{403, "The roles of the token do not suffice, or the allocation is over quota.", "Ask an operator, or a tenant-admin of the tenant."},
	{404, "The object does not exist, or it is in a namespace where no role of the token counts, or the path is none of this API.", "Correct the name; ask for a role."},
	{405, "The path takes other methods, which the header Allow names.", "Use one of them."},
	{409, "The object exists, has changed, or is in a state that forbids the request.", "Read the object, then decide again."},
	{413, "The body is larger than 1 MiB.", "Split the document."},
	{415, "The Content-Type is not the one of the route, or the body is compressed.", "Send the type that the message names."},
	{422, "The document is well formed and no cluster could satisfy it; the message names the field, its value and the limit.", "Correct the document."},
	{426, "The route is of a WebSocket, over HTTP/1.1.", "Send the headers of RFC 6455."},
	{429, "There is no room for the request now; or, with the reason TooManyObjects, the namespace has as many objects as it may have.", "Wait for the time of the header Retry-After; or delete objects."},
	{500, "The coordinator failed; its log says why.", "Ask again; report the log."},
	{501, "The coordinator runs without TLS and has no identities, or keeps no tokens.", "Set tls.enabled."},
	{503, "No leader answers. With the reason NotLeader nothing was done; with LeaderLost or LeaderUnreachable the request may have been carried out.", "Ask again, with the same Idempotency-Key."},
}

func TestTheReferenceOfRoutesIsFresh(t *testing.T) {
	var b strings.Builder
	b.WriteString("# REST\n\n<!-- Generated by make reference from the source. Do not edit. -->\n\n" +
		"Every route needs the header `Authorization: Bearer TOKEN`, but for those of *anyone*. Each route names the role with the fewest rights that\n" +
		"may use it; [roles.md](roles.md) has the whole table. A role counts in the namespaces that it is given for: everything in the others is answered\n" +
		"as if it did not exist, with 404. Bodies are JSON or, of submissions, YAML (`Content-Type: application/json`, `application/yaml`), of at\n" +
		"most 1 MiB. Prometheus reads `/metrics` on the same port.\n\n" +
		"## Parameters\n\n| parameter | type | default | meaning |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		p := parameters[name]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, p[0], p[1], p[2])
	}
	b.WriteString("\nFields of `fieldSelector`:\n\n| kind | fields |\n|---|---|\n")
	selectors := restdoc.FieldSelectors()
	for _, kind := range slices.Sorted(maps.Keys(selectors)) {
		fmt.Fprintf(&b, "| %s | `%s` |\n", kind, strings.Join(selectors[kind], "`, `"))
	}
	b.WriteString("\n## Headers\n\n| header | in | meaning |\n|---|---|---|\n" +
		"| `Idempotency-Key` | creations of allocations and jobs | 1 to 128 printable characters without spaces. A repeated creation with the same key and document is answered with the object of the first, for 24 h. |\n" +
		"| `Warning` | answers | Fields that are recorded and have no effect. |\n" +
		"| `Retry-After` | answers with 429 | Seconds to wait. |\n" +
		"| `Muster-Revision` | answers | A revision of the store that is not older than the answer. |\n" +
		"| `Allow` | answers with 405 | The methods that the path takes. |\n\n" +
		"## Refusals\n\nA refusal is a [Status](status.md).\n\n| code | reason | meaning | next |\n|---|---|---|---|\n")
	for _, c := range codes {
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", c.code, api.Errorf(c.code, "").Reason, c.meaning, c.next)
	}
	b.WriteString("\n## Routes\n")
	for _, r := range restdoc.Routes() {
		writeRoute(&b, r)
	}
	fresh.File(t, filepath.Join("..", "..", "docs", "reference", "rest.md"), b.String())
}

func TestTheReferenceOfRolesIsFresh(t *testing.T) {
	roles := []service.Role{service.Viewer, service.Editor, service.TenantAdmin, service.Operator, service.Admin, service.Node}
	var b strings.Builder
	b.WriteString("# Roles\n\n<!-- Generated by make reference from the source. Do not edit. -->\n\n" +
		"A role is a set of rights: a verb on a kind, as the kind is named in the paths of [REST](rest.md). An [AccessToken](accesstoken.md) has a role, and a\n" +
		"[RoleBinding](rolebinding.md) gives roles to users and tokens; [security.md](../security.md#who-may-do-what) says how. A role counts in the namespaces\n" +
		"that it is given for. Kinds marked with * are in namespaces, or are tenants: elsewhere the answer is 404. The other kinds belong to the cluster, and a\n" +
		"role counts for them wherever it was given.\n\n| kind | verb |")
	for _, r := range roles {
		fmt.Fprintf(&b, " %s |", r)
	}
	b.WriteString("\n|---|---|" + strings.Repeat(":-:|", len(roles)) + "\n")
	for _, r := range service.Rights() {
		star := ""
		if r.Namespaced {
			star = "*"
		}
		fmt.Fprintf(&b, "| %s%s | %s |", r.Kind, star, r.Verb)
		for _, role := range roles {
			b.WriteString(map[bool]string{true: " yes |", false: " |"}[r.Roles.Has(role)])
		}
		b.WriteString("\n")
	}
	fresh.File(t, filepath.Join("..", "..", "docs", "reference", "roles.md"), b.String())
}

func writeRoute(b *strings.Builder, r restdoc.Route) {
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n| | |\n|---|---|\n| for | %s%s |\n", r.Pattern(), r.Text, r.Access, map[bool]string{true: ", in the whole cluster"}[r.Everywhere])
	if len(r.Parameters) > 0 {
		fmt.Fprintf(b, "| parameters | `%s` |\n", strings.Join(r.Parameters, "`, `"))
	}
	if r.Body != "" {
		optional := ""
		if r.Optional {
			optional = ", optional"
		}
		fmt.Fprintf(b, "| body | %s%s |\n", linked(r.Body), optional)
	}
	fmt.Fprintf(b, "| answer | %d %s |\n", r.Code, linked(r.Answer))
	for _, code := range slices.Sorted(maps.Keys(r.Refusals)) {
		fmt.Fprintf(b, "| %d | %s |\n", code, r.Refusals[code])
	}
	target, body, _ := strings.Cut(r.Example, " ")
	fmt.Fprintf(b, "\n```\n%s %s\n", r.Method, target)
	if body != "" {
		fmt.Fprintf(b, "\n%s\n", body)
	}
	b.WriteString("```\n")
}

// linked links a kind to its page; a list to that of its elements.
func linked(kind string) string {
	if kind == "" {
		return ""
	}
	page := strings.ToLower(strings.TrimSuffix(kind, "List")) + ".md"
	return "[" + kind + "](" + page + ")"
}
