package devices

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// NormalizePCIBusID returns a PCI address in the kernel's form,
// "0000:07:00.0": lower case, the domain in four digits unless it needs more.
// It reads the forms that drivers print: any number of leading zeros in the domain, or
// no domain at all ("07:00.0" is domain 0).
func NormalizePCIBusID(text string) (string, error) {
	fields := strings.Split(text, ":")
	if len(fields) == 2 {
		fields = append([]string{"0"}, fields...)
	}
	if len(fields) != 3 {
		return "", fmt.Errorf("PCI address %q: want domain:bus:device.function", text)
	}
	slot, function, ok := strings.Cut(fields[2], ".")
	if !ok {
		return "", fmt.Errorf("PCI address %q: no function after the device", text)
	}
	var numbers [4]uint64
	for i, part := range []struct {
		name, digits string
		greatest     uint64
	}{
		{"domain", fields[0], 0xffffffff}, {"bus", fields[1], 0xff}, {"device", slot, 0x1f}, {"function", function, 7},
	} {
		n, err := strconv.ParseUint(part.digits, 16, 64)
		if err != nil || n > part.greatest {
			return "", fmt.Errorf("PCI address %q: %s %q is not a hexadecimal number up to %x", text, part.name, part.digits, part.greatest)
		}
		numbers[i] = n
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", numbers[0], numbers[1], numbers[2], numbers[3]), nil
}

// ComparePCIBusID orders two addresses as NormalizePCIBusID prints them by
// domain, bus, device and function.
func ComparePCIBusID(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
