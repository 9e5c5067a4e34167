package rights

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/service"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/answers.txt as the table of rights is")

// place is where an object is, for a caller who has a role in one tenant.
type place string

const (
	inOwn   place = "own"     // in the caller's tenant, or of that tenant
	inOther place = "other"   // in another tenant
	inAll   place = "all"     // a request over all namespaces
	inNone  place = "cluster" // of a kind that is in no namespace
)

// asked is one right and the place that it is asked for: one row of the file.
type asked struct {
	kind  service.Kind
	verb  service.Verb
	place place
}

func (a asked) String() string { return fmt.Sprintf("%s %s (%s)", a.verb, a.kind, a.place) }

// who are the callers: one for each role, and one that has none. The roles viewer,
// editor and tenant-admin are in one tenant, operator and admin in the whole cluster.
// The node is a host with its bootstrap token.
var who = []string{"none", "viewer", "editor", "tenant-admin", "operator", "admin", "node"}

// The answers. An allowed request gets past the decision and reaches the service.
const (
	yes          = "yes"
	unknown      = "401"
	forbidden    = "403"
	doesNotExist = "404"
)

// answers are the expected answers of one row, in the order of who.
type answers []string

func (a answers) of(role string) string { return a[slices.Index(who, role)] }

// ofTenants are kinds whose objects name a tenant and are in no namespace. The right is
// judged first, and then whether the object is one of the caller's tenant.
var ofTenants = []service.Kind{service.KindAccessTokens, service.KindRoleBindings, service.KindUsage}

// expected is the answer to a role, by the sentences of docs/security.md.
func expected(right service.Right, at place, name string) string {
	role, known := service.RoleNamed(name)
	may := known && right.Roles.Has(role)
	everywhere := role == service.Operator || role == service.Admin
	listsOwn := right.Kind == service.KindTenants || right.Kind == service.KindNamespaces
	counts := known && (everywhere || at == inOwn || at == inNone || at == inAll && (listsOwn || !right.Namespaced))
	switch {
	case role == service.Node && may:
		return yes
	case role == service.Node || name == "node":
		return unknown // a bootstrap token is good for its one purpose
	case right.Roles == service.Known:
		return yes // each caller, without a role too
	case slices.Contains(ofTenants, right.Kind) && may && !counts && isNew(right):
		return forbidden // the caller's own document names the other tenant
	case slices.Contains(ofTenants, right.Kind) && may && !counts:
		return doesNotExist
	case slices.Contains(ofTenants, right.Kind) && !may:
		return forbidden
	case may && counts:
		return yes
	case right.Namespaced && !counts && at != inAll:
		return doesNotExist
	}
	return forbidden
}

// isNew reports whether the request has the whole object.
func isNew(r service.Right) bool {
	return r.Verb == service.VerbCreate || r.Verb == service.VerbUpdate
}

// places are the places that a right is asked for at least.
func places(r service.Right) []place {
	switch {
	case slices.Contains(ofTenants, r.Kind) && r.Verb != service.VerbList && r.Verb != service.VerbWatch, r.Namespaced:
		return []place{inOwn, inOther}
	}
	return []place{inNone}
}

// table is every row: of each right of the table, and of each request over all
// namespaces.
func table() map[asked]answers {
	rows := map[asked]answers{}
	for _, r := range service.Rights() {
		at := places(r)
		collects := slices.Contains([]service.Verb{service.VerbList, service.VerbWatch, service.VerbCreate}, r.Verb)
		if r.Namespaced && (collects || r.Kind == service.KindEvents) { // the events of nodes are in no namespace
			at = append(at, inAll)
		}
		if r.Kind == service.KindUsage {
			at = append(at, inNone)
		}
		for _, p := range at {
			var row answers
			for _, name := range who {
				row = append(row, expected(r, p, name))
			}
			rows[asked{r.Kind, r.Verb, p}] = row
		}
	}
	return rows
}

// door is a way into the API.
type door string

const (
	overREST door = "REST"
	overGRPC door = "gRPC"
	bySDK    door = "SDK"
	byCLI    door = "CLI"
)

const head = `# The answer to each role, for each right and each place. Written by
#     go test ./test/rights -args -rewrite
# Places: own = in the caller's tenant, other = in another tenant, all = over all
# namespaces, cluster = the kind is in no namespace. The roles viewer, editor and
# tenant-admin are of one tenant; operator and admin are of the whole cluster; none is a
# token without a role; node is a host with its bootstrap token.
# Answers: yes = the request reaches the service, 404 = the answer is that of an object
# that does not exist. Doors: the ways into the API that have the request.
`

// written is the file of the rows, with the doors that were asked for each.
func written(rows map[asked]answers, doors map[asked]map[door]bool) string {
	var b strings.Builder
	b.WriteString(head)
	line := func(cells ...string) {
		text := ""
		for i, c := range cells {
			text += fmt.Sprintf("%-*s", []int{21, 11, 9, 6, 8, 8, 14, 10, 7, 6}[min(i, 9)], c)
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	line(slices.Concat([]string{"KIND", "VERB", "PLACE"}, who, []string{"DOORS"})...)
	keys := slices.SortedFunc(maps.Keys(rows), func(a, b asked) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.verb, b.verb), cmp.Compare(order(a.place), order(b.place)))
	})
	for _, k := range keys {
		if len(doors[k]) == 0 {
			continue // such as a list of one tenant's namespaces: no door has it
		}
		var at []string
		for _, d := range []door{overREST, overGRPC, bySDK, byCLI} {
			if doors[k][d] {
				at = append(at, string(d))
			}
		}
		line(slices.Concat([]string{string(k.kind), string(k.verb), string(k.place)}, rows[k], []string{strings.Join(at, " ")})...)
	}
	return b.String()
}

func order(p place) int { return slices.Index([]place{inOwn, inOther, inAll, inNone}, p) }

// TestEveryDoorAnswersByTheTable asks each door for each right. Each refusal over REST and
// gRPC is one entry of the audit. The file of the
// expected answers is compared last: it lists the doors that have each request.
func TestEveryDoorAnswersByTheTable(t *testing.T) {
	h := newHouse(t)
	rows, doors := table(), map[asked]map[door]bool{}
	see := func(d door, k asked) answers {
		row, known := rows[k]
		if !known {
			t.Errorf("%s has %s, which no row of the table allows", d, k)
			return nil
		}
		if doors[k] == nil {
			doors[k] = map[door]bool{}
		}
		doors[k][d] = true
		return row
	}
	t.Run("REST", func(t *testing.T) { askREST(t, h, see) })
	t.Run("gRPC", func(t *testing.T) { askGRPC(t, h, see) })
	t.Run("SDK", func(t *testing.T) { askSDK(t, h, see) })
	t.Run("CLI", func(t *testing.T) { askCLI(t, h, see) })
	for _, r := range service.Rights() {
		if !slices.ContainsFunc([]place{inOwn, inAll, inNone}, func(p place) bool { return doors[asked{r.Kind, r.Verb, p}][overREST] }) {
			t.Errorf("the table of rights has %s %s, and no route of REST asks for that right", r.Verb, r.Kind)
		}
	}
	compare(t, filepath.Join("testdata", "answers.txt"), written(rows, doors))
}

// compare compares a file with its expected text, or writes the file.
func compare(t *testing.T, path, want string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	have, wanted := strings.Split(string(got), "\n"), strings.Split(want, "\n")
	for i := range max(len(have), len(wanted)) {
		a, b := "", ""
		if i < len(have) {
			a = have[i]
		}
		if i < len(wanted) {
			b = wanted[i]
		}
		if a != b {
			t.Fatalf("%s, line %d:\n%s\nthe table of rights and the doors say:\n%s\nwrite the file again by go test ./test/rights -args -rewrite, and read the difference", path, i+1, a, b)
		}
	}
}
