package simulate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/simulate"
)

const (
	nodeHead = "sn,cpu_milli,memory_mib,gpu,model\n"
	podHead  = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
)

func TestReadNodes(t *testing.T) {
	got, err := simulate.ReadNodes(strings.NewReader(nodeHead + "a,64000,262144,2,P100\nb,32000,1024,0,\n"))
	want := []simulate.Node{{Name: "a", CPU: 64_000, Memory: 256 << 30, GPUs: 2, Model: "P100"}, {Name: "b", CPU: 32_000, Memory: 1 << 30}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, c := range map[string]struct{ list, want string }{
		"nothing at all":                   {"", "the list is empty; its first line has to be sn,cpu_milli,memory_mib,gpu,model"},
		"a head alone":                     {nodeHead, "the list has no nodes"},
		"a column that is missing":         {"sn,cpu_milli\n", "line 1: column memory_mib is missing; want sn,cpu_milli,memory_mib,gpu,model"},
		"half a CPU":                       {nodeHead + "a,1500,1,0,\n", "line 2: cpu_milli: 1500 is no whole number of CPUs, 1000 each"},
		"a number that is none":            {nodeHead + "a,many,1,0,\n", `line 2: cpu_milli: "many": want a number from 0 to 1024000`},
		"less than no memory":              {nodeHead + "a,1000,-1,0,\n", `line 2: memory_mib: "-1": want a number from 0 to 1073741824`},
		"more GPUs than a host has":        {nodeHead + "a,1000,1,65,X\n", `line 2: gpu: "65": want a number from 0 to 64`},
		"GPUs of no model":                 {nodeHead + "a,1000,1,1,\n", "line 2: model: is empty, and the node has 1 GPUs"},
		"two nodes of one name":            {nodeHead + "a,1000,1,0,\na,1000,1,0,\n", `line 3: sn: "a": a node before has that name`},
		"a node without a name":            {nodeHead + ",1000,1,0,\n", "line 2: sn: is empty"},
		"a short row":                      {nodeHead + "a,1000\n", `line 2: memory_mib: "": want a number from 0 to 1073741824`},
		"a name that is far too long":      {nodeHead + strings.Repeat("n", 1025) + ",1000,1,0,\n", "line 2: sn: 1025 bytes, more than 1024"},
		"a quote that does not end in CSV": {nodeHead + "\"a,1000\n", "line 2, column 9: extraneous or missing \" in quoted-field"},
	} {
		if _, err := simulate.ReadNodes(strings.NewReader(c.list)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestReadPods(t *testing.T) {
	got, err := simulate.ReadPods(strings.NewReader(podHead + "a,12000,16384,1,1000,,LS\nb,500,1,1,460,G2|A10|G2,BE\nc,500,1,0,0,G2,BE\nd,1,1,8,1000,,\n"))
	want := []simulate.Pod{
		{Name: "a", CPU: 12_000, Memory: 16 << 30, GPUs: 1}, {Name: "b", CPU: 500, Memory: 1 << 20, Share: 460, Models: []string{"A10", "G2"}},
		{Name: "c", CPU: 500, Memory: 1 << 20}, {Name: "d", CPU: 1, Memory: 1 << 20, GPUs: 8},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err = simulate.ReadPods(strings.NewReader("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,1000\n")); err != nil || got[0].GPUs != 1 {
		t.Errorf("a list without gpu_spec: %v, %v", got, err)
	}
	for name, c := range map[string]struct{ list, want string }{
		"a head alone":         {podHead, "the list has no pods"},
		"a share of nothing":   {podHead + "a,1,1,1,0,,\n", "line 2: gpu_milli: 0 of 1 GPUs: want 1 to 1000"},
		"shares of two GPUs":   {podHead + "a,1,1,2,500,,\n", "line 2: gpu_milli: 500 of each of 2 GPUs: a share is of one GPU"},
		"more than one device": {podHead + "a,1,1,1,1001,,\n", `line 2: gpu_milli: "1001": want a number from 0 to 1000`},
		"an empty model":       {podHead + "a,1,1,1,10,A||B,\n", `line 2: gpu_spec: "A||B": want 1 to 64 models, separated by |`},
	} {
		if _, err := simulate.ReadPods(strings.NewReader(c.list)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func FuzzReadNodes(f *testing.F) {
	f.Add(nodeHead + "a,64000,262144,2,P100\n")
	f.Add("\ufeffsn,cpu_milli,memory_mib,gpu,model\n\"a\",1000,1,1,\"x|y\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		nodes, err := simulate.ReadNodes(strings.NewReader(text))
		if (err == nil) != (len(nodes) > 0) {
			t.Fatalf("%d nodes and %v", len(nodes), err)
		}
		if len(nodes) > 0 && len(nodes) < 20 {
			if _, err := simulate.NewCluster(nodes); err != nil {
				t.Fatalf("a list that was read makes no cluster: %v", err)
			}
		}
	})
}

func FuzzReadPods(f *testing.F) {
	f.Add(podHead + "a,12000,16384,1,460,G2|T4,LS\n")
	f.Add("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,8,1000\n")
	f.Fuzz(func(t *testing.T, text string) {
		pods, err := simulate.ReadPods(strings.NewReader(text))
		if (err == nil) != (len(pods) > 0) {
			t.Fatalf("%d pods and %v", len(pods), err)
		}
		for _, p := range pods {
			if p.GPUs > 0 && p.Share > 0 || p.GPUs > 64 || p.Share > 999 {
				t.Fatalf("read %+v", p)
			}
		}
	})
}
