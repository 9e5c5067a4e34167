package evil

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/sdk"
)

// tenantTricks are what a tenant tries with its own token beside sheer numbers: the
// objects of others, other tokens, higher priorities, and texts that no document has.
var tenantTricks = map[string]func(context.Context, *run) error{
	"others-objects":  othersObjects,
	"bad-tokens":      badTokens,
	"high-priority":   each(highPriority, jobToBoost),
	"bad-documents":   each(badDocuments),
	"odd-paths":       oddPaths,
	"keys-of-others":  keysOfOthers,
	"debugging-doors": each(debuggingDoors),
}

// aboutOthers are requests about an object of another tenant, with its namespace, name
// and uid.
func aboutOthers(v Victim) []ask {
	in := "/api/v1/namespaces/" + v.Namespace
	object := in + "/allocations/" + v.Name
	const small = `"spec":{"resources":{"requests":{"cpu":"1m"}}}`
	return []ask{
		{method: "GET", path: object},
		{method: "GET", path: object + "?wait=1ms"},
		{method: "GET", path: object + "/explain"},
		{method: "GET", path: object + "/quota"},
		{method: "PATCH", path: object, body: `{"metadata":{"labels":{"a":"b"}}}`},
		{method: "DELETE", path: object},
		{method: "DELETE", path: object, body: `{"preconditions":{"uid":"` + v.UID + `"}}`},
		{method: "GET", path: in + "/allocations"},
		{method: "GET", path: in + "/allocations?watch=true"},
		{method: "GET", path: in + "/allocations?labelSelector=team%3Dpayroll"},
		{method: "GET", path: in + "/allocations?limit=1&continue=" + url.QueryEscape(v.Name)},
		{method: "GET", path: in + "/allocations?watch=true&resourceVersion=1"},
		{method: "POST", path: in + "/allocations", body: `{"metadata":{"name":"` + v.Name + `"},` + small + `}`},
		{method: "POST", path: in + "/allocations?dryRun=All", body: `{"metadata":{"name":"` + v.Name + `"},` + small + `}`},
		{method: "POST", path: in + "/allocations/bulk-release", body: `{"labelSelector":"team=payroll"}`},
		{method: "POST", path: in + "/preemptions", body: `{"targetAllocation":"` + v.Name + `","reason":"mine"}`},
		{method: "GET", path: in + "/jobs/" + v.Name},
		{method: "POST", path: in + "/jobs/" + v.Name + "/cancel", body: `{}`},
		{method: "GET", path: in + "/resourcequotas"},
		{method: "GET", path: in + "/resourcequotas/" + v.Name},
		{method: "GET", path: in + "/events"},
		{method: "GET", path: in},
		{method: "GET", path: "/api/v1/tenants/" + v.Namespace},
	}
}

// readable are the requests that a tenant may send, whose answers are no business of the
// names of others.
var readable = []string{
	"/api/v1/nodes", "/api/v1/quotatrees", "/api/v1/metrics/queues", "/api/v1/namespaces", "/api/v1/tenants", allocations, jobs, "/api/v1/whoami", "/readyz", "/openapi.json", "/metrics",
}

// othersObjects asks for an object of another tenant, and for one that does not exist:
// the answers have to be the same but for the names.
func othersObjects(ctx context.Context, r *run) error {
	c, err := r.client(8)
	if err != nil {
		return err
	}
	r.ready()
	absent := Victim{Namespace: "nobody", Name: "nothing", UID: "alloc-00000000-0000-4000-8000-000000000000"}
	names := strings.NewReplacer(r.Victim.Namespace, "NAMESPACE", r.Victim.Name, "NAME", r.Victim.UID, "UID")
	others := strings.NewReplacer(absent.Namespace, "NAMESPACE", absent.Name, "NAME", absent.UID, "UID")
	about, none := aboutOthers(r.Victim), aboutOthers(absent)
	for round := range r.Size {
		for i := range about {
			about[i].label, none[i].label, about[i].at, none[i].at = "object of another", "object that is not there", round+i, round+i
			code, text := r.send(ctx, c, about[i])
			other, same := r.send(ctx, c, none[i])
			if code != other || names.Replace(sentence(text)) != others.Replace(sentence(same)) {
				r.count("answers differ")
				r.note("%s %s: %d %q, want %d %q", about[i].method, about[i].path, code, sentence(text), other, sentence(same))
			}
		}
		for i, path := range readable {
			if _, text := r.send(ctx, c, ask{label: "own sight", method: "GET", path: path, at: i}); strings.Contains(text, r.Victim.Name) {
				r.count("a name of another is shown")
				r.note("%s shows %s", path, r.Victim.Name)
			}
		}
		for i, path := range []string{"/api/v1/allocations", "/api/v1/allocations?watch=true", "/metrics/cluster", "/api/v1/audit", "/api/v1/tokens"} {
			if code, text := r.send(ctx, c, ask{label: "all tenants", method: "GET", path: path, at: i}); strings.Contains(text, r.Victim.Name) {
				r.count("a name of another is shown")
				r.note("%s: %d shows %s", path, code, r.Victim.Name)
			}
		}
	}
	return nil
}

// badTokens shows tokens that let nobody in, over REST and gRPC.
func badTokens(ctx context.Context, r *run) error {
	c, err := r.client(8)
	if err != nil {
		return err
	}
	trust, err := credentials.NewClientTLSFromFile(r.CAFile, "")
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient("passthrough:///"+r.Coordinators[0].REST, grpc.WithTransportCredentials(trust))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	r.ready()
	headers := map[string]http.Header{
		"two tokens": {"Authorization": {"Bearer " + r.RESTToken, "Bearer " + r.RESTToken}},
		"no token":   {"Authorization": {}},
		"no scheme":  {"Authorization": {r.RESTToken}},
	}
	for what, token := range r.Tokens {
		headers[what] = http.Header{"Authorization": {"Bearer " + token}}
	}
	const document = `{"metadata":{"name":"a"},"spec":{"resources":{"requests":{"cpu":"1m"}}}}`
	for round := range 5 * r.Size {
		for _, what := range slices.Sorted(maps.Keys(headers)) {
			r.send(ctx, c, ask{label: what, method: "POST", path: allocations, body: document, header: headers[what], at: round})
			call := metadata.NewOutgoingContext(ctx, metadata.MD{"authorization": headers[what]["Authorization"]})
			_, err := apiv1.NewAllocationsClient(conn).Delete(call, &apiv1.DeleteRequest{Namespace: TenantNamespace, Name: "a"})
			r.answered(what+" over gRPC", err)
		}
	}
	return nil
}

// jobToBoost is a job of the attacker that takes no room.
var jobToBoost = ask{
	label: "job to boost", method: "POST", path: jobs, body: `{"metadata":{"name":"boosted"},"spec":{"suspend":true,"template":{"spec":{"resources":{"requests":{"cpu":"1m"}}}}}}`,
}

// highPriority asks for more than the token's ceiling, and for rights of others.
func highPriority(*run) []ask {
	const request = `"resources":{"requests":{"cpu":"1m"}}`
	return []ask{
		{label: "priority", method: "POST", path: allocations, body: `{"metadata":{"name":"p"},"spec":{"priority":1001,` + request + `}}`},
		{label: "priority", method: "POST", path: allocations, body: `{"metadata":{"name":"p"},"spec":{"priorityClass":"system-critical",` + request + `}}`},
		{label: "priority", method: "POST", path: jobs, body: `{"metadata":{"name":"p"},"spec":{"priority":1000000000,"template":{"spec":{` + request + `}}}}`},
		{label: "priority", method: "POST", path: jobs, body: `{"metadata":{"name":"p"},"spec":{"priorityClass":"system-critical","template":{"spec":{` + request + `}}}}`},
		{label: "priority", method: "POST", path: allocations + "?dryRun=All", body: `{"metadata":{"name":"p"},"spec":{"priorityClass":"system-critical",` + request + `}}`},
		{label: "rights", method: "POST", path: "/api/v1/tokens", body: `{"spec":{"user":"mallory","role":"admin"}}`},
		{label: "rights", method: "POST", path: "/api/v1/rolebindings", body: `{"kind":"RoleBinding","metadata":{"name":"hostile.x"},"spec":{"role":"admin","subjects":[{"kind":"User","name":"mallory"}]}}`},
		{label: "rights", method: "PATCH", path: "/api/v1/namespaces/" + TenantNamespace, body: `{"spec":{"priorityCeiling":1000000}}`},
		{label: "rights", method: "POST", path: "/api/v1/nodes/node-1/drain", body: `{}`},
		{label: "rights", method: "POST", path: "/api/v1/bootstraptokens", body: `{"spec":{"nodes":"*"}}`},
		{label: "rights", method: "PATCH", path: "/api/v1/quota", body: `{"mode":"Maintenance"}`},
		{label: "boost", method: "POST", path: jobs + "/boosted/boost", body: `{"newPriority":1000000,"duration":"1h"}`},
	}
}

// badDocuments are texts that no document has.
func badDocuments(*run) []ask {
	var all []ask
	add := func(body string, kind ...string) {
		all = append(all, ask{label: "document", method: "POST", path: allocations, body: body})
		if len(kind) > 0 {
			all[len(all)-1].header = http.Header{"Content-Type": kind}
		}
	}
	with := func(quantity string) string {
		return `{"metadata":{"name":"q"},"spec":{"resources":{"requests":{"cpu":` + quantity + `}}}}`
	}
	for _, quantity := range []string{
		`"-1"`, `-1`, `"9223372036854775808"`, `9223372036854775808`, `"9223372036854775807"`, `"NaN"`, `NaN`, `"Infinity"`, `"1e400"`, `1e400`, `"1e-400"`, `"0x10"`, `"1_000"`, `"١"`, `""`, `"1 "`,
		`null`, `true`, `[]`, `{"$ref":"#"}`, `"` + strings.Repeat("9", 100_000) + `"`,
	} {
		add(with(quantity))
	}
	const spec = `"spec":{"resources":{"requests":{"cpu":"1m"}}}`
	for _, document := range []string{
		`{"metadata":{"name":"a"},"metadata":{"name":"b"},` + spec + `}`, `{"metadata":{"name":"a","name":"b"},` + spec + `}`,
		strings.Repeat(`[`, 100_000), strings.Repeat(`{"a":`, 10_000) + `1` + strings.Repeat(`}`, 10_000),
		`{"metadata":{"name":"a"},` + spec + `} {}`, "\xff\xfe", `{"metadata":{"name":"a"},"spec":{"scheduling":{"nodeAffinity":` + strings.Repeat(`[`, 9_000) + strings.Repeat(`]`, 9_000) + `}}}`,
		`{"metadata":{"name":"` + strings.Repeat("a", 900_000) + `"},` + spec + `}`, `{"metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("x", 900_000) + `"}},` + spec + `}`,
	} {
		add(document)
	}
	var labels strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&labels, `"l%d":"",`, i)
	}
	add(`{"metadata":{"name":"a","labels":{` + strings.TrimSuffix(labels.String(), ",") + `}},` + spec + `}`)
	// YAML: each of nine lists is nine times the one before (a billion laughs), and depth.
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 10; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	add(laughs, "application/yaml")
	add(strings.Repeat("- ", 100_000)+"x", "application/yaml")
	add("metadata: {name: a}\nmetadata: {name: b}\nspec: {resources: {requests: {cpu: 1m}}}\n", "application/yaml")
	add("metadata: {name: a}\nspec: {resources: {requests: {cpu: .nan}}}\n", "application/yaml")
	return all
}

// oddPaths sends request lines that no client library sends.
func oddPaths(ctx context.Context, r *run) error {
	trust, err := sdk.Trust(r.CAFile)
	if err != nil {
		return err
	}
	r.ready()
	victim := "namespaces/" + r.Victim.Namespace + "/allocations/" + r.Victim.Name
	for _, path := range []string{
		"/api/v1/namespaces/" + TenantNamespace + "/../" + r.Victim.Namespace + "/allocations/" + r.Victim.Name,
		allocations + "/../../../" + victim,
		allocations + "/..%2f..%2f..%2f" + victim,
		allocations + "/%2e%2e/%2e%2e/%2e%2e/" + victim,
		"/api/v1/namespaces/" + r.Victim.Namespace + "%2fallocations/" + r.Victim.Name,
		"/api/v1/namespaces/" + r.Victim.Namespace + "%00/allocations/" + r.Victim.Name,
		"/api/v1/namespaces/" + strings.ToUpper(r.Victim.Namespace) + "/allocations/" + r.Victim.Name,
		"/api/v1/namespaces/" + r.Victim.Namespace + "%20/allocations/" + r.Victim.Name,
		"/api/v1/namespaces/d%D0%B5fault/allocations/" + r.Victim.Name, // a Cyrillic letter
		"/api/v1/namespaces/%EF%BD%84efault/allocations/" + r.Victim.Name,
		"/api/v1/namespaces//allocations/" + r.Victim.Name,
		"//api/v1/" + victim, "/api//v1/" + victim, "/API/V1/" + victim, "/api/v1/" + victim + "/", "/api/v1/./" + victim, "/api/v1;x/" + victim,
		"/api/v1/" + victim + "%0d%0aX-Admin:%20yes", "/api/v1/" + victim + "?w%61tch=true", "/api/v1/" + victim + "#x", `/api/v1\` + victim,
		"http://" + r.Coordinators[0].REST + "/api/v1/" + victim, "*", "/" + strings.Repeat("a/", 10_000), "/%zz", "/%",
	} {
		code, err := r.line(ctx, trust, path)
		switch {
		case err != nil:
			r.count("path: closed")
			r.note("%.80s: %v", path, err)
		case code < 400 || code >= 500:
			r.count(fmt.Sprintf("path: %d", code))
			r.note("%.80s: %d", path, code)
		default:
			r.count(fmt.Sprintf("path: %d", code))
		}
	}
	return nil
}

// line sends one request line over a connection of its own and returns the status.
func (r *run) line(ctx context.Context, trust *tls.Config, path string) (code int, err error) {
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 3 * time.Second}, Config: trust.Clone()}
	conn, err := dialer.DialContext(ctx, "tcp", r.Coordinators[0].REST)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", path, r.RESTToken); err != nil {
		return 0, err
	}
	answer := make([]byte, 12)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return 0, err
	}
	_, err = fmt.Sscanf(string(answer), "HTTP/1.1 %d", &code)
	return code, err
}

// keysOfOthers uses the Idempotency-Key of another tenant, and one key for two
// documents.
func keysOfOthers(ctx context.Context, r *run) error {
	c, err := r.client(4)
	if err != nil {
		return err
	}
	r.ready()
	create := func(label, key, name string) (code int, text string) {
		return r.send(ctx, c, ask{
			label: label, method: "POST", path: allocations, header: http.Header{"Idempotency-Key": {key}, "Content-Type": {"application/json"}},
			body: fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"resources":{"requests":{"cpu":"1m"}},"suspend":true}}`, name),
		})
	}
	name := r.Node + "-own"
	if _, text := create("key of another", r.Victim.Key, name); strings.Contains(text, r.Victim.UID) || strings.Contains(text, r.Victim.Name) {
		r.count("an object of another is shown")
	}
	for range 5 * r.Size {
		create("key again", r.Victim.Key, name)
		create("key for another document", r.Victim.Key, name+"-2")
	}
	create("key of 300 bytes", strings.Repeat("k", 300), name+"-3")
	create("key with a blank", "a b", name+"-4")
	return nil
}

// debuggingDoors are doors that tenants have no business at.
func debuggingDoors(*run) []ask {
	var all []ask
	for _, path := range []string{
		"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1", "/debug/vars", "/debug/requests", "/debug/failpoints", "/failpoints", "/metrics/cluster",
		"/api/v1/audit", "/api/v1/tokens", "/api/v1/bootstraptokens", "/api/v1/authorities", "/api/v1/namespaces/" + TenantNamespace + "/allocations/a/exec", "/api/v1/namespaces/" + TenantNamespace + "/jobs/a/logs",
		"/api/v1/nodes/node-1/evictions", "/.env", "/config.yaml",
	} {
		all = append(all, ask{label: "door", method: "GET", path: path})
	}
	return all
}
