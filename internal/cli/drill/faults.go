package drill

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "toban.dev/api/v1"
)

// drillFaults and drillInstances are what a FaultDrill knows.
var (
	drillFaults = []string{
		string(v1.FaultServerKilled), string(v1.FaultServerHung), string(v1.FaultAgentKilled),
		string(v1.FaultPodDeleted), string(v1.FaultPodKilled), string(v1.FaultPoolersKilled),
		string(v1.FaultVolumeLost), string(v1.FaultDiskFull), string(v1.FaultReplayPaused),
		string(v1.FaultAPIAway), string(v1.FaultArchiveAway), string(v1.FaultLeaderKilled),
		string(v1.FaultByHand),
	}
	drillInstances = []string{
		string(v1.DrillPrimary), string(v1.DrillStandby), string(v1.DrillAll), string(v1.DrillZone),
	}
)

// notThere are faults that people look for and a FaultDrill does not have: words of their names, with why not and what
// to do instead (docs/faultdrill.md, "Limits"). The first that fits counts.
var notThere = []struct{ words, why string }{
	{"network cut partition packet lossy latency", "no instance has the right to lose packets of its network " +
		"(CAP_NET_ADMIN), and a connection that is closed would show something else. Use --fault ByHand --observe " +
		"2m, and deny the traffic by a policy of your network plugin when the clients write"},
	{"node drain cordon evict", "the operator has no rights on nodes. Use --fault PodDeleted, by which an instance " +
		"stops in order as in a drain (with --on Zone all of a zone do), or --fault ByHand --observe 5m, and " +
		"kubectl drain the node when the clients write"},
	{"agenthung agentpaused agentfrozen agentstopped", "the agent is process 1 of its container, which can't be " +
		"stopped from inside. Use --fault AgentKilled, which shows that an agent is away, or --fault ServerHung"},
	{"slow stall disk io", "a disk can't be held up without rights on its node. Use --fault ServerHung, which is " +
		"what a disk that hangs does to a server, or --fault DiskFull"},
	{"memory oom cpu", "a load beside the server would meet whatever else is on its node. Use --fault ServerKilled, " +
		"which is what the kernel does to a server for its memory, or --fault ByHand --observe 2m, and make the load"},
}

// knownFault is nil for a fault that there is, else it says what to do instead.
func knownFault(typed string) error {
	if slices.Contains(drillFaults, typed) {
		return nil
	}
	for _, other := range notThere {
		for _, word := range strings.Fields(other.words) {
			if strings.Contains(strings.ToLower(typed), word) {
				return fmt.Errorf("there is no fault %s: %s (docs/faultdrill.md, \"Limits\")", typed, other.why)
			}
		}
	}
	return fmt.Errorf("there is no fault %s: choose one of %s", typed, strings.Join(drillFaults, ", "))
}

// partsOf are further faults, as they are typed.
func partsOf(typed []string) (parts []v1.FaultDrillPart, err error) {
	for _, text := range typed {
		fault, instance, ok := strings.Cut(text, "=")
		if err := knownFault(fault); err != nil {
			return nil, fmt.Errorf("--meanwhile %s: %w", text, err)
		}
		if !ok {
			return nil, fmt.Errorf("--meanwhile %s does not say to which instance: write --meanwhile %s=%s, or =%s",
				text, text, v1.DrillPrimary, strings.Join(drillInstances[1:], ", ="))
		}
		parts = append(parts, v1.FaultDrillPart{
			Fault: v1.FaultDrillFault(fault), Instance: v1.FaultDrillInstance(instance),
		})
	}
	return parts, nil
}

// completeMeanwhile completes the last of further faults, first its name and then the instance.
func completeMeanwhile(_ *cobra.Command, _ []string, word string) (all []string, _ cobra.ShellCompDirective) {
	before, last := "", word
	if i := strings.LastIndex(word, ","); i >= 0 {
		before, last = word[:i+1], word[i+1:]
	}
	fault, instance, named := strings.Cut(last, "=")
	if !named {
		for _, known := range drillFaults {
			if strings.HasPrefix(known, fault) {
				all = append(all, before+known+"=")
			}
		}
		return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	for _, known := range drillInstances {
		if strings.HasPrefix(known, instance) {
			all = append(all, before+fault+"="+known)
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}
