package canary

import (
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
