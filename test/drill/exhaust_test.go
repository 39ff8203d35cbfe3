package main

import "testing"

func TestAContainersCgroupIsFound(t *testing.T) {
	const first = "9:name=systemd:/a/b\n5:cpu,memory:/a/pod1/c\n0::/\n"
	const second = "0::/a/pod1/c\n"
	cases := map[string]struct {
		text, controller string
		want             group
	}{
		"version 1": {
			"4:memory:/a/pod1/c\n", "memory", group{dir: "/sys/fs/cgroup/memory/a/pod1/c"},
		},
		"version 1, with others beside":     {first, "memory", group{dir: "/sys/fs/cgroup/memory/a/pod1/c"}},
		"version 2":                         {second, "pids", group{dir: "/sys/fs/cgroup/a/pod1/c", unified: true}},
		"neither, since none has such name": {"9:name=systemd:/a/b\n", "pids", group{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, found := groupOf(c.text, c.controller)
			if got != c.want || found != (c.want != group{}) {
				t.Errorf("groupOf = %+v, %t", got, found)
			}
		})
	}
}
