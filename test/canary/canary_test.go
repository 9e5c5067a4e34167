package canary

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretsAreFoundByTheirForm(t *testing.T) {
	for text, want := range map[string]string{
		"level=INFO msg=made token=muster.at-5d1f09c2ab.0123456789abcdef0123456789abcdef01234567": "an access token",
		`{"token":"muster-boot.6e8a5f2c41.0123456789abcdef0123456789abcdef.00ff"}`:                "a bootstrap token",
		"-----BEGIN EC PRIVATE KEY-----\nMHcCAQ":                                                  "a private key",
		"Authorization: Bearer 0123456789abcdef-operator":                                         "a credential of a request",
		"level=ERROR error=\"token " + Secret("admin") + " is not known\"":                        "a secret that a test has chosen",
		"the key is xyzzy-in-base64":                                                              "known secret 0",
		"muster.at-5d1f09c2ab.(hidden) and muster-boot.6e8a5f2c41.(hidden)":                       "",
		"token=at-5d1f09c2ab user=ada":                                                            "",
		"send the header Authorization: Bearer TOKEN":                                             "",
	} {
		found := Find(text, "xyzzy-in-base64")
		if want == "" && len(found) > 0 || want != "" && (len(found) != 1 || !strings.HasPrefix(found[0], want)) {
			t.Errorf("%q: %q, want %q", text, found, want)
		}
	}
}

func TestSecretsAreFoundInFiles(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		mode       os.FileMode
		want       string
	}{
		"a token in a log":                 {"log", "token=" + Secret("x"), 0o600, "a secret that a test has chosen"},
		"a token in a configuration":       {"config.yaml", "token: muster.at-5d1f09c2ab.0123456789abcdef", 0o600, "an access token"},
		"a key in a file for keys":         {"party.pem", "-----BEGIN EC PRIVATE KEY-----", 0o600, ""},
		"a file for keys that others read": {"party.pem", "-----BEGIN EC PRIVATE KEY-----", 0o640, "may hold secrets, and has the mode -rw-r-----"},
		"a log without secrets":            {"log", "level=INFO msg=serving", 0o644, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "node-1"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "node-1", c.file), []byte(c.text), c.mode); err != nil {
				t.Fatal(err)
			}
			found, seen, err := Files(dir)
			if err != nil || seen != 1 || c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0], c.want)) {
				t.Errorf("%d files, %q, %v; want %q", seen, found, err, c.want)
			}
		})
	}
}
