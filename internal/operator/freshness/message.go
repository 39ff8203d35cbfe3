package freshness

// maxMessage is the longest message of a condition (characters). Kubernetes takes 32768; nobody reads so much.
const maxMessage = 4000

// Message keeps a text within what a condition should have.
func Message(text string) string {
	if runes := []rune(text); len(runes) > maxMessage {
		return string(runes[:maxMessage]) + "…"
	}
	return text
}
