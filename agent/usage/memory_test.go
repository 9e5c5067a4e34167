package usage_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent/pressure"
	"github.com/musterd/muster/agent/usage"
)

const (
	meminfo = "MemTotal:       16384 kB\nMemFree:          100 kB\nMemAvailable:    4096 kB\nBuffers:            8 kB\nCached:           20 kB\n"
	psi     = "some avg10=12.34 avg60=0.00 avg300=0.00 total=5\nfull avg10=2.05 avg60=0.00 avg300=0.00 total=3\n"
)

func TestReadsMemoryAsTheKernelShowsIt(t *testing.T) {
	tests := map[string]struct {
		files   map[string]string
		want    pressure.Reading
		wantErr string
	}{
		"stalls and amounts":                  {files: map[string]string{"meminfo": meminfo, "pressure/memory": psi}, want: pressure.Reading{HasStall: true, Stall: 205, Available: 4 << 20, Total: 16 << 20}},
		"a kernel without stalls":             {files: map[string]string{"meminfo": meminfo}, want: pressure.Reading{Available: 4 << 20, Total: 16 << 20}},
		"a kernel without MemAvailable":       {files: map[string]string{"meminfo": strings.Replace(meminfo, "MemAvailable", "Other", 1)}, want: pressure.Reading{Available: 128 << 10, Total: 16 << 20}},
		"more available than there is":        {files: map[string]string{"meminfo": "MemTotal: 1 kB\nMemAvailable: 2 kB\n"}, want: pressure.Reading{Available: 1 << 10, Total: 1 << 10}},
		"everything stalls":                   {files: map[string]string{"meminfo": meminfo, "pressure/memory": "full avg10=100.00 x\n"}, want: pressure.Reading{HasStall: true, Stall: 10000, Available: 4 << 20, Total: 16 << 20}},
		"no meminfo":                          {wantErr: "proc/meminfo"},
		"an empty meminfo":                    {files: map[string]string{"meminfo": ""}, wantErr: "no MemTotal above 0"},
		"a total of nothing":                  {files: map[string]string{"meminfo": "MemTotal: 0 kB\n"}, wantErr: "no MemTotal above 0"},
		"a total beyond any host":             {files: map[string]string{"meminfo": "MemTotal: 9223372036854775807 kB\n"}, wantErr: "no MemTotal above 0"},
		"an empty pressure file":              {files: map[string]string{"meminfo": meminfo, "pressure/memory": ""}, wantErr: "no line full"},
		"a share above all":                   {files: map[string]string{"meminfo": meminfo, "pressure/memory": "full avg10=100.01\n"}, wantErr: "not avg10="},
		"a share without digits behind it":    {files: map[string]string{"meminfo": meminfo, "pressure/memory": "full avg10=5\n"}, wantErr: "not avg10="},
		"a share below zero":                  {files: map[string]string{"meminfo": meminfo, "pressure/memory": "full avg10=-1.00\n"}, wantErr: "not avg10="},
		"a share that is not the ten seconds": {files: map[string]string{"meminfo": meminfo, "pressure/memory": "full avg60=1.00\n"}, wantErr: "not avg10="},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, content := range test.files {
				to := filepath.Join(dir, "proc", path)
				if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(to, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := usage.ReadMemory(os.DirFS(dir))
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestThisHostsMemoryIsRead(t *testing.T) {
	r, err := usage.ReadMemory(os.DirFS("/"))
	if err != nil || r.Total <= 0 || r.Available > r.Total {
		t.Errorf("%+v, %v", r, err)
	}
}

func FuzzReadMemory(f *testing.F) {
	f.Add(meminfo, psi)
	f.Add(meminfo, "full avg10=100.00")
	f.Add("MemTotal: 1 kB", "full avg10=0.0")
	f.Fuzz(func(t *testing.T, meminfo, psi string) {
		r, err := usage.ReadMemory(fstest.MapFS{
			"proc/meminfo": &fstest.MapFile{Data: []byte(meminfo)}, "proc/pressure/memory": &fstest.MapFile{Data: []byte(psi)},
		})
		if err == nil && (r.Total <= 0 || r.Available < 0 || r.Available > r.Total || r.Stall < 0 || r.Stall > 10000) {
			t.Errorf("%+v", r)
		}
	})
}

func TestReadsTheKillsForLackOfMemory(t *testing.T) {
	for name, c := range map[string]struct {
		vmstat string
		want   int64
		fails  bool
	}{
		"some":                  {"nr_free_pages 5\noom_kill 3\noom_kill_disable 1\n", 3, false},
		"an old kernel":         {"nr_free_pages 5\n", usage.UnknownKills, false},
		"a number that is none": {"oom_kill many\n", usage.UnknownKills, true},
		"fewer than none":       {"oom_kill -1\n", usage.UnknownKills, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := usage.OOMKills(fstest.MapFS{"proc/vmstat": {Data: []byte(c.vmstat)}})
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("%d, %v; want %d", got, err, c.want)
			}
		})
	}
	if got, err := usage.OOMKills(fstest.MapFS{}); got != usage.UnknownKills || err == nil {
		t.Errorf("without a file: %d, %v", got, err)
	}
}
