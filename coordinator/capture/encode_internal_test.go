package capture

import (
	"strings"
	"testing"
)

// A document has at most the bytes that Decode takes, and the refusal has both numbers.
func TestADocumentIsEncodedUpToItsBound(t *testing.T) {
	d := &Document{Format: Format, Version: Version}
	text, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.encode(len(text)); err != nil {
		t.Error(err)
	}
	const want = "the document of 0 nodes and 0 keys has "
	if _, err := d.encode(len(text) - 1); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
