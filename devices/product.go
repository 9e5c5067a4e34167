package devices

import "strings"

// ProductLabel is a model as the value of a label: "NVIDIA-A100-SXM4-80GB". It is ""
// for a model without a letter or digit.
func ProductLabel(model string) string {
	value := strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || (r >= '0' && r <= '9') || (r >= 'A' && r <= 'Z') || (r >= 'a' && r <= 'z') {
			return r
		}
		return '-'
	}, model)
	value = strings.TrimLeft(value, "-._")
	return strings.TrimRight(value[:min(len(value), 63)], "-._")
}
