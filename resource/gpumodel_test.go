package resource

import (
	"strings"
	"testing"
)

// TestProductsHaveShortModels holds that the variants of a model are one name. The
// products are those that drivers report, and those of published clusters.
func TestProductsHaveShortModels(t *testing.T) {
	for product, want := range map[string]string{
		"NVIDIA H100 80GB HBM3": "h100", "NVIDIA H100 PCIe": "h100", "NVIDIA H100 NVL": "h100", "NVIDIA H200": "h200",
		"NVIDIA A100-SXM4-40GB": "a100", "NVIDIA A100-SXM4-80GB": "a100", "NVIDIA A100 80GB PCIe": "a100", "A100-SXM4-80GB": "a100",
		"NVIDIA A800-SXM4-80GB": "a800", "Tesla V100-SXM2-32GB": "v100", "Tesla V100-PCIE-16GB": "v100", "Tesla P100-PCIE-16GB": "p100",
		"Tesla T4": "t4", "NVIDIA L40S": "l40s", "NVIDIA A10G": "a10g", "NVIDIA A30": "a30", "NVIDIA GB200": "gb200",
		"NVIDIA GH200 480GB": "gh200", "NVIDIA GH200 144G HBM3e": "gh200", "NVIDIA B200": "b200", "NVIDIA B300 SXM6 AC": "b300",
		"NVIDIA GeForce RTX 4090": "geforce-rtx-4090", "NVIDIA GeForce RTX 3090 Ti": "geforce-rtx-3090-ti",
		"NVIDIA RTX 6000 Ada Generation": "rtx-6000-ada", "NVIDIA RTX A6000": "rtx-a6000", "Quadro RTX 8000": "quadro-rtx-8000",
		"A10": "a10", "G2": "g2", "G3": "g3", "P100": "p100", "T4": "t4", "V100M16": "v100m16", "V100M32": "v100m32", "GPU-series-1": "gpu-series-1",
		"H800": "h800", "A": "a", "80GB": "80gb", "": "unknown", "€ — ": "unknown", "Product": "product-gpu", "NVIDIA memory": "memory-gpu",
	} {
		if got := ShortGPUModel(product); got != want {
			t.Errorf("%q: %q, want %q", product, got, want)
		}
	}
}

func TestNamesOfModelsHaveOneSpelling(t *testing.T) {
	for name, want := range map[Name]string{"nvidia.com/gpu.h100": "h100", "nvidia.com/gpu.rtx-6000-ada": "rtx-6000-ada", "nvidia.com/gpu.product-gpu": "product-gpu"} {
		if model, ok, err := name.GPUModel(); model != want || !ok || err != nil {
			t.Errorf("%s: %q %t %v", name, model, ok, err)
		}
	}
	for name, want := range map[Name]string{
		"nvidia.com/gpu.H100":        `"nvidia.com/gpu.H100": want the spelling "nvidia.com/gpu.h100"`,
		"nvidia.com/gpu.nvidia-h100": `"nvidia.com/gpu.nvidia-h100": want the spelling "nvidia.com/gpu.h100"`,
		"nvidia.com/gpu.":            `"nvidia.com/gpu." names no model of GPUs: want one as in nvidia.com/gpu.h100`,
		"nvidia.com/gpu.product":     `"nvidia.com/gpu.product" names no model of GPUs: want one as in nvidia.com/gpu.h100`,
		"nvidia.com/gpu.memory":      `"nvidia.com/gpu.memory" names no model of GPUs: want one as in nvidia.com/gpu.h100`,
	} {
		if model, ok, err := name.GPUModel(); model != "" || !ok || err == nil || err.Error() != want {
			t.Errorf("%s: %q %t %v, want %s", name, model, ok, err, want)
		}
	}
	for _, name := range []Name{GPU, "nvidia.com/mig-1g.10gb", CPU, "", "nvidia.com/gpus.h100"} {
		if model, ok, err := name.GPUModel(); model != "" || ok || err != nil {
			t.Errorf("%s: %q %t %v", name, model, ok, err)
		}
	}
}

func FuzzShortGPUModel(f *testing.F) {
	for _, product := range []string{"NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-32GB", "", "hbm", "product", strings.Repeat("9", 50) + "gb", strings.Repeat("ab ", 40)} {
		f.Add(product)
	}
	f.Fuzz(func(t *testing.T, product string) {
		short := ShortGPUModel(product)
		if again := ShortGPUModel(short); again != short {
			t.Errorf("%q is %q, which is %q", product, short, again)
		}
		if strings.Trim(short, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || len(short) == 0 || len(short) > MaxGPUModel {
			t.Errorf("%q is %q", product, short)
		}
		if model, ok, err := GPUOf(product).GPUModel(); model != short || !ok || err != nil {
			t.Errorf("%q: %q %t %v", product, model, ok, err)
		}
	})
}
