package health

// row is the verdict of the numbers first to last.
type row struct {
	first, last uint64
	Verdict
}

// Names of the sources; docs/health.md has their addresses.
const (
	xids    = "Xid Catalog: " // and its immediate and investigatory resolution bucket
	plugin  = "; k8s-device-plugin: application error"
	memory  = "; GPU Memory Error Management: "
	support = "/ CONTACT_SUPPORT"
	nothing = "no action given"
)

// Reasons that several rows share.
const (
	whyDecoder = "the decoder judges a program's input, as for 68"
	whyEngine  = "restarting the program is enough once; one engine that fails again and again is the device's fault"
	whyPeer    = "a neighbour that fails or is reset takes its links along: siblings must not be tainted for it"
	whyDetails = "what to do depends on details that the number does not hold"
	whyPower   = "it smooths the power that the host draws; programs run on"
	whySecure  = "of confidential computing alone, without an action in the catalog"
)

// catalog is every XID that has a verdict of its own, ascending. Numbers that
// the vendor marks as unused since Ampere have none: older cards may send them
// with another meaning, which a row could not express.
var catalog = [...]row{
	{8, 8, Verdict{Suspicious, false, "the GPU stopped processing", whyEngine, xids + "RESTART_APP " + support}},
	{11, 11, Verdict{Application, false, "invalid commands in a push buffer", "", xids + "RESTART_APP / CHECK_APP/CUDA"}},
	{13, 13, Verdict{Application, false, "graphics engine exception", "as a rule a program's access out of bounds", xids + "RESTART_APP / WORKFLOW_XID_13" + plugin}},
	{14, 14, Verdict{Notice, false, "injected error", "somebody tests", xids + "IGNORE " + support}},
	{25, 25, Verdict{Application, false, "illegal commands in a push buffer", "", xids + "RESTART_APP / CHECK_APP/CUDA"}},
	{31, 31, Verdict{Application, false, "memory page fault", "as a rule a program's illegal address", xids + "RESTART_APP / WORKFLOW_XID_31" + plugin}},
	{32, 32, Verdict{Suspicious, false, "corrupted push buffer", "the catalog blames the quality of the PCIe link, not programs", xids + "RESTART_APP / CHECK_APP/CUDA"}},
	{37, 37, Verdict{Application, false, "unknown firmware method", "", xids + "IGNORE / CHECK_APP/CUDA"}},
	{38, 38, Verdict{Watch, false, "firmware watchdog timeout", "", xids + "IGNORE " + support}},
	{39, 41, Verdict{Suspicious, false, "copy engine exception", whyEngine, xids + "RESTART_APP " + support}},
	{43, 43, Verdict{Application, false, "a program stopped after a fault of its own", "the device stays healthy", xids + "IGNORE " + support + plugin}},
	{44, 44, Verdict{Watch, false, "graphics engine fault during a context switch", "", xids + "IGNORE " + support}},
	{45, 45, Verdict{Application, false, "a program was torn down", "what tore it down is told by an error of its own", xids + "WORKFLOW_XID_45" + plugin}},
	{46, 46, Verdict{Fatal, true, "the GPU timed out", "", xids + "RESET_GPU " + support}},
	{48, 48, Verdict{Fatal, true, "uncorrectable double-bit memory error", "only a reset clears it; no new work until then, and what runs may finish", xids + "WORKFLOW_XID_48"}},
	{54, 54, Verdict{Fatal, true, "auxiliary power is not connected", "somebody has to open the host", xids + "CHECK_MECHANICALS " + support}},
	{60, 60, Verdict{Suspicious, false, "security processor exception", whyEngine, xids + "RESTART_APP / INVESTIGATE_SW"}},
	{62, 62, Verdict{Fatal, true, "internal micro-controller halt", "", xids + "RESET_GPU " + support}},
	{63, 63, Verdict{Watch, true, "bad memory will be replaced by a spare row or page", "work may go on and new work may start; the reset can wait for an idle moment", xids + "IGNORE / IGNORE" + memory + "row-remapping pending flag"}},
	{64, 64, Verdict{Fatal, true, "bad memory could not be replaced", "", xids + "RESET_GPU " + support}},
	{66, 66, Verdict{Notice, false, "illegal register access by the driver", "the driver's fault", xids + "IGNORE / INVESTIGATE_SW"}},
	{67, 67, Verdict{Watch, false, "illegal access by the driver", "", xids + "IGNORE " + support}},
	{68, 68, Verdict{Application, false, "video decoder exception", "", xids + "RESTART_APP " + support + plugin}},
	{69, 69, Verdict{Application, false, "graphics engine class error", "", xids + "RESTART_APP / CHECK_APP/CUDA"}},
	{70, 72, Verdict{Suspicious, false, "copy engine error", whyEngine, xids + "RESTART_APP " + support}},
	{74, 74, Verdict{Suspicious, true, "NVLink error", whyPeer, xids + "WORKFLOW_NVLINK_ERR " + support}},
	{75, 77, Verdict{Suspicious, false, "copy engine error", whyEngine, xids + "RESTART_APP " + support}},
	{78, 78, Verdict{Watch, false, "vGPU start error", "software of the host does not match", xids + "UPDATE_SWFW / UPDATE_SWFW"}},
	{79, 79, Verdict{Fatal, true, "GPU has fallen off the bus", "", xids + "RESTART_BM " + support}},
	{80, 80, Verdict{Suspicious, false, "corrupted data sent to the GPU", "a check sum of the link, not of the program", xids + "RESTART_APP / CHECK_APP/CUDA"}},
	{82, 82, Verdict{Application, false, "JPEG decoder error", whyDecoder, xids + "RESTART_APP " + support}},
	{83, 84, Verdict{Application, false, "video decoder error", whyDecoder, xids + "RESTART_APP " + support}},
	{85, 85, Verdict{Suspicious, false, "copy engine error", whyEngine, xids + "RESTART_APP " + support}},
	{86, 86, Verdict{Suspicious, false, "optical flow engine exception", whyEngine, xids + "RESTART_APP " + support}},
	{88, 89, Verdict{Application, false, "video decoder error", whyDecoder, xids + "RESTART_APP " + support}},
	{92, 92, Verdict{Watch, false, "high rate of corrected memory errors", "", xids + "IGNORE " + support}},
	{93, 93, Verdict{Notice, false, "InfoROM wear limit reached", "as a rule the limit was set on purpose", xids + "IGNORE " + support}},
	{94, 94, Verdict{Suspicious, true, "contained memory error", "only the program that met it is lost, and others may start before the reset; several would cost a program each", xids + "RESTART_APP / IGNORE" + memory + "error containment"}},
	{95, 95, Verdict{Fatal, true, "uncontained memory error", "", xids + "RESET_GPU / IGNORE" + memory + "error containment"}},
	{96, 98, Verdict{Application, false, "video decoder error", whyDecoder, xids + "RESTART_APP " + support}},
	{99, 105, Verdict{Application, false, "JPEG decoder error", whyDecoder, xids + "RESTART_APP " + support}},
	{106, 107, Verdict{Notice, false, "test message of the management bus", "", xids + "IGNORE / IGNORE"}},
	{108, 108, Verdict{Application, false, "address translation error of an NVLink peer", "as 137", xids + "IGNORE / XID_137_FLOW"}},
	{109, 109, Verdict{Suspicious, false, "context switch timeout", "the sources disagree; one may be a program's endless kernel, several are not", xids + "RESET_GPU " + support + plugin}},
	{110, 110, Verdict{Fatal, true, "security fault", "", xids + "RESET_GPU / INVESTIGATE_SW"}},
	{119, 119, Verdict{Fatal, true, "the GPU's system processor does not answer", "", xids + "RESET_GPU / INVESTIGATE_SW"}},
	{120, 120, Verdict{Fatal, true, "error of the GPU's system processor", "", xids + "RESET_GPU / INVESTIGATE_SW"}},
	{121, 121, Verdict{Notice, false, "corrected error of the link to the CPU", "corrected, without effect on work", xids + "IGNORE " + support}},
	{126, 135, Verdict{Suspicious, false, "copy engine error", whyEngine, xids + "RESTART_APP " + support}},
	{136, 136, Verdict{Fatal, true, "link training failed", "", xids + "RESET_GPU / INVESTIGATE_LINK_SI"}},
	{137, 137, Verdict{Application, false, "illegal NVLink peer access", "as a rule a program's illegal address", xids + "IGNORE / XID_137_FLOW"}},
	{139, 139, Verdict{Suspicious, false, "optical flow engine error", whyEngine, xids + "RESTART_APP " + support}},
	{140, 140, Verdict{Fatal, true, "unrecovered memory error", "the driver could not set the bad memory aside", xids + "RESET_GPU " + support}},
	{141, 141, Verdict{Watch, false, "CUDA fast path error", "", xids + "IGNORE " + support}},
	{142, 142, Verdict{Suspicious, false, "video encoder error", "", xids + "CONTACT_SUPPORT"}},
	{143, 143, Verdict{Fatal, true, "GPU initialization error", "", xids + "RESET_GPU " + support}},
	{144, 144, Verdict{Suspicious, false, "NVLink error (SAW)", whyDetails, xids + "WORKFLOW_NVLINK5_ERR"}},
	{145, 145, Verdict{Suspicious, false, "NVLink error (RLW)", whyDetails, xids + "WORKFLOW_NVLINK5_ERR"}},
	{146, 146, Verdict{Suspicious, false, "NVLink error (TLW)", whyDetails, xids + "WORKFLOW_NVLINK5_ERR"}},
	{147, 147, Verdict{Suspicious, false, "NVLink error (TREX)", whyDetails, xids + "WORKFLOW_NVLINK5_ERR"}},
	{148, 148, Verdict{Suspicious, false, "NVLink error (NVLPW_CTRL)", whyDetails, xids + "WORKFLOW_NVLINK5_ERR"}},
	{149, 149, Verdict{Suspicious, false, "NVLink error (NETIR)", whyDetails, xids + "WORKFLOW_NVLINK5_ERR"}},
	{150, 150, Verdict{Suspicious, false, "NVLink error (MSE)", whyDetails, xids + "WORKFLOW_NVLINK5_ERR"}},
	{151, 151, Verdict{Fatal, true, "key rotation error", "the machine around it has to be restarted", xids + "RESTART_VM " + support}},
	{152, 153, Verdict{Watch, false, "error of the deep learning accelerator", "", xids + "IGNORE " + support}},
	{154, 154, Verdict{Notice, false, "recovery action changed", "it sums up another XID, which decides", xids + "XID_154"}},
	{155, 155, Verdict{Suspicious, false, "NVLink went down", whyPeer, xids + "RESET_GPU / INVESTIGATE_SW_USER"}},
	{156, 156, Verdict{Fatal, true, "a part of the GPU will be retired", "", xids + "RESET_GPU / IGNORE"}},
	{157, 157, Verdict{Watch, false, "a part of the GPU could not be retired", "work may go on and may meet the same error", xids + "IGNORE " + support}},
	{158, 158, Verdict{Fatal, true, "fatal timeout", "", xids + "RESET_GPU " + support}},
	{159, 159, Verdict{Watch, false, "error of the link to the CPU", "it follows errors of others", xids + "CHECK_UVM / SYMPATHETIC_REPORT_SOLO"}},
	{160, 161, Verdict{Notice, false, "channel retirement", "", xids + "IGNORE / INVESTIGATE_SW"}},
	{162, 165, Verdict{Notice, false, "power smoothing changed", whyPower, xids + nothing}},
	{166, 166, Verdict{Suspicious, false, "unencrypted NVLink traffic", whySecure, xids + nothing}},
	{167, 167, Verdict{Fatal, false, "fatal PCIe timeout", "fatal by its name; no reset is asked for", xids + nothing}},
	{168, 168, Verdict{Watch, false, "memory capacity is reduced", "seen where error correction is off", xids + nothing}},
	{169, 169, Verdict{Fatal, true, "security micro-controller halt", "as 62", xids + nothing}},
	{170, 170, Verdict{Suspicious, false, "NVLink interrupt in confidential mode", whySecure, xids + nothing}},
	{171, 172, Verdict{Notice, false, "details of an uncorrectable memory error", "48 comes with it and decides", xids + nothing}},
}
