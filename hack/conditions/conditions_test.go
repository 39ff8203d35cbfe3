package conditions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A constant has its meaning from its own comment, also where the comment stands over a declaration of its own; one
// without a meaning is an error, and so is a reason that does not say what to do.
func TestEachConstantHasAMeaning(t *testing.T) {
	tests := map[string]struct{ code, says, fails string }{
		"a condition in a declaration of its own": {
			code: "// ConditionPassed is true when\n// all went well.\nconst ConditionPassed = \"Passed\"",
			says: "is true when all went well.",
		},
		"a condition among others": {
			code: "// Conditions of a drill.\n" +
				"const (\n\t// ConditionPassed is true.\n\tConditionPassed = \"Passed\"\n)",
			says: "is true.",
		},
		"a condition without a comment": {
			code: "const ConditionPassed = \"Passed\"", fails: "ConditionPassed has no meaning",
		},
		"the comment over a list is none of its conditions": {
			code:  "// ConditionPassed is true.\nconst (\n\tConditionPassed = \"Passed\"\n)",
			fails: "ConditionPassed has no meaning",
		},
		"a comment that is only the name": {
			code:  "const (\n\t// ConditionPassed\n\tConditionPassed = \"Passed\"\n)",
			fails: "ConditionPassed has no meaning",
		},
		"a reason without a meaning": {
			code:  "// Reasons of Passed.\nconst (\n\t// ReasonX: To do: nothing.\n\tReasonX = \"X\"\n)",
			fails: "ReasonX",
		},
		"a reason that does not say what to do": {
			code:  "// Reasons of Passed.\nconst (\n\t// ReasonX: it is so. To do:\n\tReasonX = \"X\"\n)",
			fails: "ReasonX",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "conditions.go")
			if err := os.WriteFile(path, []byte("package v1\n\n"+test.code+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			all, _, err := Read(path)
			switch {
			case test.fails != "":
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("it says %v, and not %q", err, test.fails)
				}
			case err != nil:
				t.Error(err)
			case len(all) != 1 || all[0].Says != test.says:
				t.Errorf("read %+v, and not %q", all, test.says)
			}
		})
	}
}
