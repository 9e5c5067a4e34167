package run

import "testing"

func FuzzFolderNames(f *testing.F) {
	for _, name := range []string{"a.0.0", "u-1.7.1.00.3.12", "a%2Fb.0.0", "a..0", ".0.0", "a.00.0", "a.-1.0", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if i, err := parseName(name); err == nil && (i.name() != name || i.member < 0 || i.restart < 0 || i.tx == "") {
			t.Errorf("%q is read as %+v", name, i)
		}
	})
}
