package devices_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

func TestAUseIsJudgedByTheDevicesMemory(t *testing.T) {
	const size, unknown = 80 << 30, devices.UnknownUse
	for name, c := range map[string]struct {
		told devices.Use
		size resource.Bytes
		want devices.Use
		ok   bool
	}{
		"a busy device":                         {devices.Use{Percent: 37, Memory: 12 << 30}, size, devices.Use{Percent: 37, Memory: 12 << 30}, true},
		"an idle device is not an unknown one":  {devices.Use{}, size, devices.Use{}, true},
		"the greatest values":                   {devices.Use{Percent: 100, Memory: size}, size, devices.Use{Percent: 100, Memory: size}, true},
		"an unknown use stays unknown":          {devices.Use{Percent: unknown, Memory: unknown}, size, devices.Use{Percent: unknown, Memory: unknown}, true},
		"101 percent":                           {devices.Use{Percent: 101, Memory: 1}, size, devices.Use{Percent: unknown, Memory: 1}, false},
		"less than nothing":                     {devices.Use{Percent: -2, Memory: -2}, size, devices.Use{Percent: unknown, Memory: unknown}, false},
		"more memory than the device has":       {devices.Use{Percent: 1, Memory: size + 1}, size, devices.Use{Percent: 1, Memory: unknown}, false},
		"memory of a device of an unknown size": {devices.Use{Memory: size}, 0, devices.Use{Memory: size}, true},
		"more memory than any device can have":  {devices.Use{Memory: resource.MaxMemory + 1}, 0, devices.Use{Memory: unknown}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := c.told.Within(c.size); got != c.want || ok != c.ok {
				t.Errorf("%+v within %d: %+v, %t; want %+v, %t", c.told, c.size, got, ok, c.want, c.ok)
			}
		})
	}
}

func TestAJudgedUseIsPossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		told := devices.Use{Percent: rapid.Int().Draw(t, "percent"), Memory: resource.Bytes(rapid.Int64().Draw(t, "memory"))}
		size := resource.Bytes(rapid.Int64Range(0, int64(resource.MaxMemory)).Draw(t, "size"))
		got, ok := told.Within(size)
		if ok != (got == told) {
			t.Fatalf("%+v within %d: %+v, %t", told, size, got, ok)
		}
		if again, ok := got.Within(size); again != got || !ok {
			t.Fatalf("%+v judged again: %+v, %t", got, again, ok)
		}
	})
}
