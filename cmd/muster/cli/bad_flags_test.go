package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/test/manualtest"
)

// bad are bad values of one flag, with the arguments that its command needs.
func bad(args string, values ...string) []manualtest.BadValue {
	var rows []manualtest.BadValue
	for _, v := range values {
		rows = append(rows, manualtest.BadValue{Value: v, Args: strings.Fields(args)})
	}
	return rows
}

// refusedThere are bad values that the server refuses, by the name of its field.
func refusedThere(args, field, value, shown string) []manualtest.BadValue {
	return []manualtest.BadValue{{Value: value, Shown: shown, Args: strings.Fields(args), Code: ExitFailed, Names: field}}
}

func TestEveryFlagRefusesBadValues(t *testing.T) {
	s := newShell(t, newServer(t))
	kept := `{"metadata":{"name":"kept"},"spec":{"resources":{"requests":{"cpu":1}}}}`
	if code, _, stderr := s.run(t.Context(), kept, "submit", "-f", "-", "--wait"); code != ExitDone {
		t.Fatal(stderr)
	}
	state := func() string {
		code, stdout, stderr := s.run(t.Context(), "", "get", "all,nodes,quotatrees,quotaforests,quotabindings,resourcequotas", "-A", "-o", "json")
		if code != ExitDone {
			t.Fatal(stderr)
		}
		return stdout
	}
	contexts := func() string {
		raw, err := os.ReadFile(s.env["MUSTER_CONTEXT"])
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	before, contextsBefore := state(), contexts()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	noPEM, noYAML, empty := file("ca.pem", "zzz"), file("odd.yaml", "\t{"), file("empty.yaml", "")
	odd := file("kind.yaml", "kind: Zzz")
	csv := file("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\na,1000,1,1,T4\n")
	podCSV := file("pods.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,1,1,1000\n")
	long := strings.Repeat("z", 5000)
	graces := []string{"soon", "-1s", "25h", "1.5s", "1e99", "NaN"}
	selectors := func(args string) []manualtest.BadValue {
		var rows []manualtest.BadValue
		for _, v := range []string{"a==b==c", "a in", "zzz!", "=b"} {
			rows = append(rows, manualtest.BadValue{Value: v, Args: strings.Fields(args), Code: ExitFailed})
		}
		return rows
	}
	fields := []manualtest.BadValue{{Value: "zzz", Args: []string{"jobs"}, Code: ExitFailed}, {Value: "=1", Args: []string{"jobs"}, Code: ExitFailed}, {Value: "status.zzz=1", Shown: "status.zzz", Args: []string{"jobs"}, Code: ExitFailed}}
	files := func() []manualtest.BadValue {
		rows := []manualtest.BadValue{{Value: "-", Args: []string{"--filename=-"}}}
		for _, path := range []string{"/nowhere.yaml", noYAML, empty, odd} {
			rows = append(rows, manualtest.BadValue{Value: path, Code: ExitFailed, Names: path})
		}
		return rows
	}
	rows := map[string][]manualtest.BadValue{
		"muster --addr":                 bad("", "http://a b", "ftp://127.0.0.1:1"),
		"muster --ca-file":              bad("", "/nowhere/ca.pem", noPEM),
		"muster --client-certificate":   bad("", "/nowhere/party.pem", noPEM),
		"muster --client-key":           bad("", "/nowhere/key.pem", noPEM),
		"muster token create --dir":     bad("--user ada --role viewer", noPEM),
		"muster --context":              bad("", "zzz"),
		"muster --namespace":            bad("", "Zzz!", long[:100]),
		"muster --output":               {{Value: "zzz"}, {Value: ""}, {Value: "jsonpath={", Shown: `jsonpath="{"`}, {Value: "custom-columns=zzz", Shown: `custom-columns="zzz"`}},
		"muster login --listen":         bad("", "zzz", "192.0.2.1:0", "127.0.0.1"),
		"muster login --timeout":        bad("", "soon", "0s", "2h"),
		"muster top --interval":         bad("", "soon", "0s", "1h1m0s"),
		"muster login --issuer-ca-file": bad("", "/nowhere/ca.pem", noPEM),
		"muster --token":                {{Value: "a\nb", Shown: "holds a space"}},

		"muster annotate --selector": selectors("node a=b"),
		"muster label --selector":    selectors("node a=b"),
		"muster taint --selector":    selectors("node a=b:NoSchedule"),
		"muster apply --dry-run":     bad("-f x", "zzz", "server"), "muster apply --filename": files(),
		"muster quota apply --dry-run": bad("-f x", "zzz", "server"), "muster quota apply --filename": files(),
		"muster submit --dry-run": bad("-f x", "zzz"), "muster submit --replace": {{Args: strings.Fields("-f x --dry-run=client"), Value: "true", Shown: "a dry run removes nothing", Names: "--replace and --dry-run"}}, "muster submit --filename": files(), "muster submit --timeout": bad("-f x", "0s", "-1s"),
		"muster ca operator --dir": bad("ann", ""), "muster ca operator --ttl": bad("ann --dir "+dir, "59s", "-1s", "721h0m0s"),
		"muster cancel --grace": bad("job train", graces...), "muster cancel --reason": refusedThere("job train", "reason", long, "5000"),
		"muster boost --priority": bad("train", "zzz", "0", "-1", "1000000001"), "muster boost --for": bad("train --priority 5", "soon", "0s", "169h0m0s"),
		"muster boost --reason": refusedThere("train --priority 5", "reason", long, "5000"), "muster boost --approved-by": refusedThere("train --priority 5", "approvedBy", long, "5000"),
		"muster decisions show --unit": bad("/nowhere", ""),
		"muster delete --dry-run":      bad("job train", "zzz", "server"), "muster delete --filename": files(),
		"muster delete --grace":    bad("job train", graces...),
		"muster delete --selector": selectors("jobs"), "muster delete --timeout": bad("job train", "-1s"),
		"muster doctor --config":   bad("", "/nowhere.yaml"),
		"muster doctor --patience": bad("", "99ms", "-1s", "1m1s"),
		"muster doctor --serf-rpc": bad("", "zzz", "127.0.0.1:99999"), "muster doctor --serf-token-file": bad("", "/nowhere/token"),
		"muster drain --grace": bad("gpu-1", graces...), "muster drain --reason": refusedThere("gpu-1", "reason", long, "5000"),
		"muster logs --member":             bad("train", "-1", "zzz"),
		"muster attach --member":           bad("train", "-1", "zzz"),
		"muster exec --member":             bad("train true", "-1", "zzz"),
		"muster run --gpus":                bad("x", "-1"),
		"muster run --nodes":               bad("x", "0", "-1"),
		"muster run --name":                bad("x", "Zzz!"),
		"muster run --env":                 bad("x", "zzz", "=1"),
		"muster run --cpu":                 refusedThere("x", "cpu", "zzz", "zzz"),
		"muster run --memory":              refusedThere("x", "memory", "zzz", "zzz"),
		"muster run --queue":               refusedThere("x", "queue", "Zzz!", "Zzz!"),
		"muster run --priority":            append(bad("x", "zzz"), refusedThere("x", "priority", "-1", "-1")...),
		"muster run --retries":             bad("x", "-1", "zzz"),
		"muster run --array":               bad("x", "1-4", "0-", "0-4%", "0-4%0", "0-4096", "0,3", "zzz", "0--1", "0-9:2", ""),
		"muster run --dependency":          bad("x", "soon:a", "afterok", "afterok:", "afterok:A!", "afterok:a?afterok:b", ""),
		"muster run --signal":              bad("x", "", "KILL", "9", "USR1@", "USR1@0", "USR1@65536", "B:USR1@60", "zzz"),
		"muster run --rootfs":              refusedThere("x", "rootfs", "there", "there"),
		"muster run --bundle":              refusedThere("x", "bundle", "there", "there"),
		"muster run --mount":               bad("x", "", ":/mnt", "/srv:", "/srv:/mnt:rw", "/srv:/mnt:ro:ro"),
		"muster run --chdir":               refusedThere("x", "workingDir", "there", "there"),
		"muster drain --timeout":           bad("gpu-1", "0s", "-1s"),
		"muster kubelet pool --timeout":    bad("gpu-1", "0s", "-1s"),
		"muster kubelet pool --add":        append(bad("gpu-1", " ", "GPU-1,GPU-1"), refusedThere("gpu-1", "spec.kubelet.add", "GPU_1", "GPU_1")...),
		"muster kubelet pool --remove":     append(bad("gpu-1", " ", "GPU-1,GPU-1"), refusedThere("gpu-1", "spec.kubelet.remove", "GPU_1", "GPU_1")...),
		"muster fence --reason":            refusedThere("gpu-1 --confirm-dead", "reason", long, "5000"),
		"muster get --field-selector":      fields,
		"muster get --limit":               bad("jobs", "-1", "many"),
		"muster get --origin":              bad("allocations", "slurm", "Kubelet"),
		"muster get --selector":            selectors("jobs"),
		"muster get --sort-by":             bad("jobs", "{", ".a["),
		"muster metrics tenant --period":   {{Value: "59s", Args: []string{"ml"}}, {Value: "9000h", Shown: "9000h0m0s", Args: []string{"ml"}}, {Value: "-1h", Shown: "-1h0m0s", Args: []string{"ml"}}},
		"muster preempt --grace":           bad("kept", graces...),
		"muster preempt --reason":          refusedThere("kept", "reason", long, "5000"),
		"muster delete --uid":              refusedThere("allocation kept", "uid", "zzz", "zzz"),
		"muster delete --resource-version": refusedThere("allocation kept", "resourceVersion", "zzz", "zzz"),
		"muster quota reclaim --grace":     bad("company --yes", graces...),
		"muster quota mode --reason":       refusedThere("Normal", "reason", long, "5000"), "muster quota mode --resource-version": refusedThere("Normal", "resourceVersion", "zzz", "zzz"),
		"muster history import-slots --table":    bad("--id id --json a --dsn-file "+empty, "", "a b", "1x"),
		"muster history import-slots --id":       bad("--table t --json a --dsn-file "+empty, "", "a;b"),
		"muster history import-slots --json":     bad("--table t --id id --dsn-file "+empty, "", "a b", "id"),
		"muster history import-slots --dsn-file": bad("--table t --id id --json a", "", "/nowhere/dsn"),
		"muster history import-slots --step":     bad("--table t --id id --json a --dsn-file "+empty, "all"),
		"muster history allocations --name":      bad("", strings.Repeat("z", 254)),
		"muster history allocations --state":     bad("", strings.Repeat("z", 65)),
		"muster history allocations --since":     bad("", "soon", "-1h", "0s"),
		"muster history allocations --limit":     bad("", "0", "-1", "many", "100001"),
		"muster history preemptions --name":      bad("", strings.Repeat("z", 254)),
		"muster history preemptions --state":     bad("", strings.Repeat("z", 65)),
		"muster history preemptions --since":     bad("", "soon", "-1h", "0s"),
		"muster history preemptions --limit":     bad("", "0", "-1", "many", "100001"),
		"muster history events --name":           bad("", strings.Repeat("z", 254)),
		"muster history events --state":          bad("", strings.Repeat("z", 65)),
		"muster history events --since":          bad("", "soon", "-1h", "0s"),
		"muster history events --limit":          bad("", "0", "-1", "many", "100001"),
		"muster usage --period":                  bad("", "59s", "367d", "-1h", "soon", "1e9d"),
		"muster usage --tenant":                  bad("", "Not A Name"),
		"muster usage --html":                    bad("--tenant ml", ""),
		"muster audit --for":                     bad("", "pod", "pod/a", "job/A_B", "token/"),
		"muster audit --limit":                   bad("", "0", "1001", "many"),
		"muster audit --person":                  {{Value: " ", Names: "--person"}},
		"muster audit --result":                  bad("", "maybe"),
		"muster audit --since":                   {{Value: "-1h", Shown: "-1h0m0s"}, {Value: "yesterday"}},
		"muster audit --until":                   {{Value: "-1h", Shown: "-1h0m0s"}, {Value: "yesterday"}},
		"muster simulate --nodes":                {{Value: "/nowhere.csv", Args: []string{"--pods", "x"}, Code: ExitFailed, Names: "/nowhere.csv"}, {Value: "", Args: []string{"--pods", "x"}}},
		"muster simulate --pods":                 {{Value: "/nowhere.csv", Args: []string{"--nodes", csv}, Code: ExitFailed, Names: "/nowhere.csv"}, {Value: "", Args: []string{"--nodes", csv}}},
		"muster simulate --policy":               append(bad("--nodes x --pods x", "random", ""), manualtest.BadValue{Value: "packed,packed", Shown: `"packed"`, Args: strings.Fields("--nodes x --pods x")}),
		"muster simulate --seeds":                bad("--nodes x --pods x", "x", "5-1", "1-1001", "-3", ""),
		"muster simulate --inflate":              bad("--nodes x --pods x", "0", "-1", "1001", "many"),
		"muster simulate --snapshot":             {{Value: "/nowhere.json", Code: ExitFailed, Names: "/nowhere.json"}},
		"muster simulate --submit":               {{Value: "/nowhere.yaml", Names: "--snapshot"}},
		"muster simulate --for":                  bad("--snapshot "+csv, "-1s", "721h", "soon"),
		"muster snapshot --file":                 {{Value: "", Names: "--file"}, {Value: "/nowhere/x.json", Code: ExitFailed}},
		"muster simulate --html":                 {{Value: "/nowhere/p.html", Args: []string{"--nodes", csv, "--pods", podCSV, "--seeds", "1"}, Code: ExitFailed}},
		"muster events --for":                    bad("", "job", "pod/a", "job/A_B"),
		"muster events --types":                  bad("", "zzz", "Normal,zzz"),
		"muster get --for":                       bad("events", "job", "pod/a", "job/A_B"),
		"muster quota what-if --filename": {
			{Value: "/nowhere.yaml", Code: ExitFailed, Names: "/nowhere.yaml"}, {Value: noYAML, Code: ExitFailed, Names: noYAML},
			{Value: empty, Code: ExitFailed, Names: empty}, {Value: odd, Code: ExitFailed, Names: odd},
		},
		"muster reconcile --grace": bad("gpu-1 --release", graces...), "muster reconcile --timeout": bad("gpu-1 --release", "0s", "-1s"),
		"muster node create --label":       {{Value: "zzz", Args: []string{"gpu-9"}}, refusedThere("gpu-9", "metadata.labels", "zzz!=1", "zzz!")[0]},
		"muster node create --taint":       {{Value: "zzz", Args: []string{"gpu-9"}}, refusedThere("gpu-9", "spec.taints[0].effect", "a=b:Zzz", "Zzz")[0]},
		"muster node create --capacity":    {{Value: "zzz", Args: []string{"gpu-9"}}, {Value: "cpu=many", Shown: "many", Args: []string{"gpu-9"}}, refusedThere("gpu-9", "spec.capacity", "cpuu=1", "cpuu")[0]},
		"muster node create --allocatable": {{Value: "zzz", Args: []string{"gpu-9"}}, {Value: "cpu=-1", Shown: "-1", Args: []string{"gpu-9"}}, refusedThere("gpu-9", "spec.allocatable", "cpuu=1", "cpuu")[0]},
		"muster token create --label":      {{Value: "zzz", Args: []string{"--node=gpu-1"}}, {Value: "zzz!=1", Shown: `"zzz!"`, Args: []string{"--node=gpu-1"}}, {Value: "nvidia.com/gpu=1", Shown: "nvidia.com/gpu", Args: []string{"--node=gpu-1"}}, {Value: "a=zzz!", Shown: `"zzz!"`, Args: []string{"--node=gpu-1"}}},
		"muster token create --node":       {{Value: ""}, {Value: "a b"}, {Value: long, Shown: "zzz"}},
		"muster token create --ttl":        bad("--node gpu-1", "0s", "-1s", "721h0m0s"), "muster token create --uses": bad("--node gpu-1", "0", "-1", "100001"),
		"muster token create --user": {{Value: " ", Names: "--user"}, {Value: "a\nb", Shown: `a\nb`}}, "muster token create --role": bad("--user ada", "root", "viewers"),
		"muster token create --tenant":      bad("--user ada --role editor", "A b", "a/b"),
		"muster token create --in":          {{Value: "a,B!", Shown: "B!", Args: []string{"--user=ada", "--role=editor", "--tenant=ml"}}},
		"muster token create --ceiling":     bad("--user ada --role editor", "-1", "1000000001"),
		"muster token create --description": {{Value: "a\nb", Shown: `a\nb`, Args: []string{"--user=ada"}}},
		"muster token rotate --overlap":     bad("at-5d1f09c2ab", "-1s", "721h0m0s"),
	}
	const tried = "a server without TLS has no identities; TestPreconditionsOfIdentities of test/identity has bad values"
	run := func(args ...string) (int, string) {
		if strings.HasPrefix(args[0], "--") { // a flag of muster itself
			args = append([]string{"get", "nodes"}, args...)
		}
		code, _, stderr := s.run(t.Context(), "", args...)
		return code, stderr
	}
	manualtest.Flags(t, New(Program{}), rows, map[string]string{
		"muster node ban --reason": "api.DecodeNodeBan bounds it, and a server without TLS has no bans",
		"muster node unban --uid":  tried, "muster node unban --resource-version": tried,
		"muster ca retire --uid": tried, "muster ca retire --resource-version": tried,
		"muster ca revoke-operator --uid": tried, "muster ca revoke-operator --resource-version": tried,
		"muster token revoke --uid": tried, "muster token revoke --resource-version": tried,
	}, run)
	if after := state(); after != before {
		t.Errorf("the cluster was\n%s\nand is after the bad flags\n%s", before, after)
	}
	if after := contexts(); after != contextsBefore {
		t.Errorf("the contexts were\n%s\nand are after the bad flags\n%s", contextsBefore, after)
	}
}
