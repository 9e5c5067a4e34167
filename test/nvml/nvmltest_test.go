package nvmltest_test

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/devices/fake/fakehost"
	nvmltest "github.com/musterd/muster/test/nvml"
)

func exports(t *testing.T, library string) []string {
	t.Helper()
	file, err := elf.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			names = append(names, s.Name)
		}
	}
	return names
}

func TestOnlyTheNewLibraryHasTheNewFunctions(t *testing.T) {
	modern := exports(t, filepath.Join(nvmltest.Build(t), nvmltest.LibraryName))
	old := exports(t, filepath.Join(nvmltest.BuildOld(t), nvmltest.LibraryName))
	for _, name := range []string{
		"nvmlDeviceGetMigMode", "nvmlDeviceGetMemoryAffinity", "nvmlDeviceGetNvLinkRemoteDeviceType",
		"nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetAttributes_v2",
		"nvmlDeviceGetRemappedRows", "nvmlEventSetWait_v2",
	} {
		if !slices.Contains(modern, name) || slices.Contains(old, name) {
			t.Errorf("%s: in the modern library %t, in the old one %t; want true, false",
				name, slices.Contains(modern, name), slices.Contains(old, name))
		}
	}
	for _, name := range []string{"nvmlInit_v2", "nvmlDeviceGetUUID", "nvmlDeviceGetTopologyCommonAncestor", "nvmlEventSetWait", "nvmlDeviceGetTotalEccErrors"} {
		if !slices.Contains(modern, name) || !slices.Contains(old, name) {
			t.Errorf("%s is missing in one of the libraries", name)
		}
	}
}

func TestBuildKeepsWhatItBuilt(t *testing.T) {
	first, second := nvmltest.Build(t), nvmltest.Build(t)
	if first != second {
		t.Errorf("two builds of one source lie in %s and %s", first, second)
	}
	entries, err := os.ReadDir(first)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == nvmltest.LibraryName }) {
		t.Errorf("%s holds no %s", first, nvmltest.LibraryName)
	}
}

func TestWriteScriptReplacesInOneStep(t *testing.T) {
	dir := t.TempDir()
	profile, err := fake.Lookup("gpu2")
	if err != nil {
		t.Fatal(err)
	}
	path := nvmltest.WriteScript(t, dir, profile, "n1")
	nvmltest.ReplaceScript(t, path, []byte("driver 1\n"))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != "driver 1\n" || len(entries) != 1 {
		t.Errorf("the script is %q in a folder of %d files; want the new text alone", text, len(entries))
	}
}

func TestActWritesTheHostsScriptAndTakesItAwayWithTheDriver(t *testing.T) {
	profile, err := fake.Lookup("gpu2")
	if err != nil {
		t.Fatal(err)
	}
	host, path := fakehost.New(profile, "n1"), filepath.Join(t.TempDir(), "host.script")
	host.XID(1, 79)
	nvmltest.Act(t, path, host)
	if text, err := os.ReadFile(path); err != nil || !slices.Equal(text, host.NVMLScript()) {
		t.Errorf("the script is %q, %v", text, err)
	}
	host.UnloadDriver()
	for range 2 {
		nvmltest.Act(t, path, host)
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("without a driver the script is there: %v", err)
		}
	}
}
