package cli

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/quota/quotajson"
	"github.com/musterd/muster/resource"
)

// golden compares a text with a file below testdata; UPDATE_GOLDEN=1 rewrites
// it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// live is a tree with consumers on it, and what the API shows of it.
type live struct {
	t    *testing.T
	m    *quota.Manager
	tree string
}

func newLive(t *testing.T, doc []byte) *live {
	t.Helper()
	spec, err := quotajson.Tree(doc, quotajson.Natural)
	if err != nil {
		t.Fatal(err)
	}
	l := &live{t: t, m: quota.NewManager(quota.Options{}), tree: spec.Name}
	if _, err := l.m.AddTree(spec); err != nil {
		t.Fatal(err)
	}
	if err := l.m.SetMode(quota.Normal); err != nil {
		t.Fatal(err)
	}
	return l
}

// add allocates a consumer, which must succeed without victims.
func (l *live) add(id, group string, request resource.Vector) {
	l.t.Helper()
	if err := l.m.AddConsumer(quota.ConsumerSpec{ID: id, Demands: []quota.Demand{{Tree: l.tree, Group: group, Request: request}}}); err != nil {
		l.t.Fatal(err)
	}
	if r, err := l.m.Allocate(l.tree, id); err != nil || !r.OK || len(r.Preempted) > 0 {
		l.t.Fatalf("%s: %+v, %v", id, r, err)
	}
}

// replace changes the tree's specification under load.
func (l *live) replace(change func(*quota.Cache)) {
	l.t.Helper()
	c, err := l.m.Cache(l.tree)
	if err != nil {
		l.t.Fatal(err)
	}
	change(c)
	if _, err := l.m.UpdateTree(l.tree); err != nil {
		l.t.Fatal(err)
	}
}

func (l *live) document() *api.QuotaTree {
	l.t.Helper()
	nodes, err := l.m.Nodes(l.tree)
	if err != nil {
		l.t.Fatal(err)
	}
	shape, err := l.m.Shape(l.tree)
	if err != nil {
		l.t.Fatal(err)
	}
	tree := &api.QuotaTree{Kind: api.KindQuotaTree, Metadata: api.ObjectMeta{Name: l.tree}, Status: api.QuotaTreeStatus{
		Root: shape.Root, Dangling: shape.Dangling, OtherRoots: shape.OtherRoots, Orphans: shape.Orphans, Cyclic: shape.Cyclic,
	}}
	for _, n := range nodes {
		status := api.QuotaNodeStatus{
			Name: n.Name, Parent: n.Parent, Depth: n.Depth, Hard: n.Hard, Leaf: n.Leaf, Consumers: n.Consumers,
			Quota: written(n.Quota), Allocated: api.Amounts(n.Allocated), Own: api.Amounts(n.Own), Borrowed: api.Amounts(n.Borrowed), Lent: api.Amounts(n.Lent),
		}
		for _, name := range n.Quota.Names() {
			if n.Allocated[name] > n.Quota[name] {
				status.OverQuota = append(status.OverQuota, name)
			}
		}
		tree.Status.Nodes = append(tree.Status.Nodes, status)
	}
	return tree
}

// written keeps zeros: a quota of 0 is one.
func written(v resource.Vector) map[resource.Name]string {
	m := map[resource.Name]string{}
	for _, name := range v.Names() {
		m[name] = resource.FormatAmount(name, v[name])
	}
	return m
}

func request(gpus int64) resource.Vector {
	return resource.Vector{resource.GPU: gpus * 1000, resource.CPU: gpus * 1000, resource.Memory: gpus * 4 << 30}
}

// company is the tree of the examples, in use: vision borrows from speech.
func company(t *testing.T) *live {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "quota-tree.json"))
	if err != nil {
		t.Fatal(err)
	}
	l := newLive(t, doc)
	l.add("vision/job/train/0", "vision", request(4))
	l.add("vision/job/more/0", "vision", request(3))
	l.add("search/alloc/index/0", "search", request(2))
	return l
}

// small is a tree whose figures differ from company's in everything that is
// drawn differently.
const small = `{"kind":"QuotaTree","metadata":{"name":"small"},"spec":{"resourceNames":["nvidia.com/gpu","slots"],"nodes":{
	"root":{"parent":null,"quota":{"nvidia.com/gpu":"unlimited","slots":100}},
	"a-very-long-name-of-a-department-indeed":{"parent":"root","hard":true,"quota":{"nvidia.com/gpu":2,"slots":10}},
	"zero":{"parent":"root","quota":{}},
	"leaf":{"parent":"a-very-long-name-of-a-department-indeed","quota":{"nvidia.com/gpu":2,"slots":10}},
	"second":{"parent":"nil","quota":{}}, "below":{"parent":"second","quota":{}},
	"lost":{"parent":"nowhere","quota":{}}, "x":{"parent":"y","quota":{}}, "y":{"parent":"x","quota":{}}}}}`

func TestPicturesOfTrees(t *testing.T) {
	lowered := company(t)
	lowered.replace(func(c *quota.Cache) {
		if err := c.SetNode("vision", quota.NodeSpec{Parent: "research", Quota: resource.Vector{resource.GPU: 3000, resource.CPU: 32000, resource.Memory: 256 << 30}}); err != nil {
			t.Fatal(err)
		}
	})
	odd := newLive(t, []byte(small))
	odd.add("ns/alloc/one/0", "leaf", resource.Vector{resource.GPU: 500, "slots": 10})
	odd.add("ns/alloc/two/0", "zero", resource.Vector{resource.GPU: 7000})
	detached := odd.document()
	detached.Status.Detached = []string{"ns/alloc/old/0"}
	for file, c := range map[string]struct {
		tree      *api.QuotaTree
		consumers bool
	}{
		"tree-borrowing.txt":  {company(t).document(), false},
		"tree-consumers.txt":  {company(t).document(), true},
		"tree-over-quota.txt": {lowered.document(), false},
		"tree-odd.txt":        {detached, true},
		"tree-empty.txt":      {newLive(t, []byte(`{"kind":"QuotaTree","metadata":{"name":"none"},"spec":{"nodes":{"a":{"parent":"b","quota":{}}}}}`)).document(), false},
	} {
		t.Run(file, func(t *testing.T) {
			lines := append([]string{legend, ""}, style{}.treePicture(c.tree, c.consumers)...)
			golden(t, file, strings.Join(lines, "\n")+"\n")
			for i, line := range lines {
				if n := utf8.RuneCountInString(line); n > 100 && !strings.HasPrefix(line, "warning: ") {
					t.Errorf("line %d has %d columns: %s", i+1, n, line)
				}
			}
		})
	}
}

func TestColoursChangeNothingButColours(t *testing.T) {
	tree := company(t).document()
	plain, coloured := style{}.treePicture(tree, true), style{on: true}.treePicture(tree, true)
	if diff := cmp.Diff(plain, bare(coloured)); diff != "" {
		t.Errorf("without its colours (-plain +coloured):\n%s", diff)
	}
	if cmp.Equal(plain, coloured) {
		t.Error("there are no colours")
	}
}

// bare takes the colours away.
func bare(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		var b strings.Builder
		for i, piece := range strings.Split(line, "\x1b[") {
			if i > 0 {
				_, piece, _ = strings.Cut(piece, "m")
			}
			b.WriteString(piece)
		}
		out = append(out, b.String())
	}
	return out
}

func quotas() []*api.ResourceQuota {
	amounts := func(pairs ...string) map[resource.Name]string {
		m := map[resource.Name]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[resource.Name(pairs[i])] = pairs[i+1]
		}
		return m
	}
	return []*api.ResourceQuota{
		{
			Metadata: api.ObjectMeta{Namespace: "ml", Name: "team"},
			Spec: api.ResourceQuotaSpec{
				Hard: amounts("cpu", "64", "memory", "1Ti", "nvidia.com/gpu", "10"), Soft: amounts("memory", "512Gi", "nvidia.com/gpu", "8"),
				Scopes: []string{"NotTerminating"},
			},
			Status: api.ResourceQuotaStatus{
				Used: amounts("cpu", "1500m", "memory", "640Gi", "nvidia.com/gpu", "8"), Reserved: amounts("cpu", "500m"), Trend: amounts("nvidia.com/gpu", "+5% over 24h"),
			},
		},
		{
			Metadata: api.ObjectMeta{Namespace: "ml", Name: "urgent"},
			Spec: api.ResourceQuotaSpec{Soft: amounts("nvidia.com/gpu", "2"), ScopeSelector: &api.ScopeSelector{MatchExpressions: []api.ScopeExpression{
				{ScopeName: "PriorityClass", Operator: "In", Values: []string{"high-priority"}},
			}}},
			Status: api.ResourceQuotaStatus{Used: amounts("nvidia.com/gpu", "3")},
		},
		{
			Metadata: api.ObjectMeta{Namespace: "web", Name: "team"},
			Spec:     api.ResourceQuotaSpec{Hard: amounts("nvidia.com/gpu", "2", "pods", "0")},
			Status: api.ResourceQuotaStatus{Used: amounts("nvidia.com/gpu", "5"), Conditions: []api.Condition{
				{Type: "OverLimit", Status: "True", Message: "nvidia.com/gpu: 5 used, limit 2"},
			}},
		},
	}
}

func TestTheTableOfResourceQuotas(t *testing.T) {
	lines := style{}.quotaRows(quotas(), true, true)
	golden(t, "resourcequotas.txt", strings.Join(lines, "\n")+"\n")
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestQuotasAreDescribed(t *testing.T) {
	var out strings.Builder
	a := &app{Program: Program{Stdout: &out, Env: func(string) string { return "" }}, output: "table"}
	for _, o := range []object{
		objectOf(api.KindResourceQuota, quotas()[0]),
		objectOf(api.KindResourceQuota, quotas()[1]),
		objectOf(api.KindResourceQuota, quotas()[2]),
		objectOf(api.KindQuotaTree, company(t).document()),
		objectOf(api.KindQuotaForest, &api.QuotaForest{Metadata: api.ObjectMeta{Name: "both"}, Spec: api.QuotaForestSpec{Trees: []string{"company", "services"}}}),
		objectOf(api.KindQuotaBinding, &api.QuotaBinding{Metadata: api.ObjectMeta{Name: "vision"}, Spec: api.QuotaBindingSpec{
			Forest: "both", Groups: map[string]string{"services": "gold", "company": "vision"},
		}}),
	} {
		if err := o.kind().entry().describe(a, t.Context(), o); err != nil {
			t.Fatal(err)
		}
		out.WriteString("----\n")
	}
	golden(t, "quotas-described.txt", out.String())
}

func TestWhereAUnitStands(t *testing.T) {
	var out strings.Builder
	a := &app{Program: Program{Stdout: &out, Env: func(string) string { return "" }}, output: "table"}
	gpu := map[resource.Name]string{resource.GPU: "4", resource.CPU: "16"}
	for _, q := range []api.QuotaExplanation{
		{Consumer: "vision/more", Phase: api.Running, Summary: "vision/more borrows 4 nvidia.com/gpu on tree company", Placements: []api.QuotaPlacement{
			{Tree: "company", Group: "vision", Request: gpu, Node: "research", BorrowsFrom: []string{"speech"}, ReclaimableBy: []string{"speech"}},
			{Tree: "services", Group: "gold", Request: gpu, Node: "gold", Priority: 5, Unpreemptable: true},
		}},
		{Consumer: "vision/alone", Phase: api.Running, Summary: "vision/alone borrows", Placements: []api.QuotaPlacement{{Tree: "company", Group: "vision", Request: gpu, Node: "research"}}},
		{
			Consumer: "vision/late", Phase: api.Queued, Summary: "vision/late waits for quota", Placements: []api.QuotaPlacement{{Tree: "company", Group: "vision", Request: gpu}},
			Reasons: []resource.Reason{
				{Code: resource.ReasonQuota, Resource: resource.GPU, Want: 4000, Have: 1000, Detail: "exceeded quota: gpu limit 16, requested 4, used 15 (node company of tree company)"},
				{Code: resource.ReasonQuota, Resource: resource.CPU, Want: 4000, Have: 1000},
			},
		},
		{Consumer: "free/one", Phase: api.Running, Summary: "free/one is charged to no tree"},
	} {
		a.printQuotaExplanation(&q)
		out.WriteString("----\n")
	}
	for _, q := range []api.QuotaDryRun{
		{Admitted: true, Summary: "what-if would be admitted", Placements: []api.QuotaPlacement{{Tree: "company", Group: "speech", Request: gpu, Node: "speech"}}, Moved: []string{"vision/job/more/0"}},
		{Summary: "what-if would have to evict 2", Victims: []string{"a/job/b/0", "a/job/c/0"}},
	} {
		if err := a.printQuotaDryRun(&q); (err == nil) != q.Admitted {
			t.Errorf("%s: %v", q.Summary, err)
		}
		out.WriteString("----\n")
	}
	golden(t, "quota-explain.txt", out.String())
}

func TestBarsAreProportionalAndOfOneWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.OneOf(rapid.Int64Range(0, 40), rapid.Int64Range(0, math.MaxInt64), rapid.Just(int64(0)))
		var parts []part
		for range rapid.IntRange(0, 7).Draw(t, "parts") {
			parts = append(parts, part{amount.Draw(t, "amount"), heldGlyph, green})
		}
		cells, sum, some := shares(parts), 0, false
		for i, p := range parts {
			some = some || p.amount > 0
			sum += cells[i]
			if (p.amount > 0) != (cells[i] > 0) {
				t.Fatalf("%d has %d cells", p.amount, cells[i])
			}
			for k := range i {
				if parts[k].amount < p.amount && cells[k] > cells[i]+1 || parts[k].amount > p.amount && cells[k]+1 < cells[i] {
					t.Fatalf("%d has %d cells and %d has %d", p.amount, cells[i], parts[k].amount, cells[k])
				}
			}
		}
		if want := map[bool]int{true: barWidth}[some]; sum != want {
			t.Fatalf("%d cells of %d", sum, want)
		}
		if n := utf8.RuneCountInString(style{}.bar(parts...)); n != barWidth {
			t.Fatalf("the bar has %d columns", n)
		}
	})
}
