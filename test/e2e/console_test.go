//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A person looks at databases in a browser: what needs somebody is first, the picture follows a failover by itself, a
// moment becomes a command and a manifest that the cluster takes, and a backup is asked for.
func TestConsole(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 3, "deletionPolicy: Delete"))
	s.apply(bare("notes", 1, "postgresql: {parameters: {work_mem: much}}"))
	db := s.ready("shop")
	p := s.openConsole("--write")
	p.sees("#rows tr:first-child.act a[data-key$='/notes']")
	// Not all is well where another story has cordoned a node: then two instances are in one zone (SurvivesZoneLoss).
	p.sees("#rows tr:first-child ~ :is(.well, .warn) a[data-key$='/shop']")
	p.picture("fleet", 300)

	// A driven browser writes the slash too, though the page has taken the key.
	p.press("/", kb.Backspace, "shop", kb.ArrowDown, kb.Enter)
	p.sees(primaryNamed(db.Status.Primary))
	p.does("window.stays = true")
	s.run("delete", "pod", db.Status.Primary, "--wait=false")
	p.sees(".node[data-role=primary]:not([data-node='" + db.Status.Primary + "'])")
	p.sees(".timeline .topic.failover")
	if !p.says("String(window.stays)", "true") {
		t.Error("the page was loaded anew")
	}
	p.takesAMoment()
	p.sees(".node.follower ~ .node.follower") // all are back
	p.takesABackup()
	p.sees(".node.follower ~ .node.follower") // all are back
	p.untilSays(".node.follower .lag", "behind")
	p.picture("database", 900)
	p.changesItsLooks()
	p.press(kb.Escape)
	p.sees("#fleet")
}

func primaryNamed(name string) string { return ".node[data-role=primary][data-node='" + name + "']" }

// browser is a person's, with the console.
type browser struct {
	*story
	ctx context.Context
}

// openConsole starts the console, and a browser that opens its URL.
func (s *story) openConsole(flags ...string) *browser {
	s.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		s.Fatalf("%v: hack/deps.sh tests installs it", err)
	}
	url := s.startConsole(flags...)
	options := chromedp.DefaultExecAllocatorOptions[:]
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has none for root
	}
	ctx, cancel := chromedp.NewContext(s.ctx, chromedp.WithAllocatorOptions(options...))
	s.Cleanup(cancel)
	// The browser ends with the context of the first step (chromedp.Run), so this one has no deadline.
	must(s.T, chromedp.Do(ctx))
	p := &browser{s, ctx}
	s.Cleanup(p.tell)
	p.do(chromedp.EmulateViewport(1240, 760), light("light"), chromedp.Navigate(url))
	return p
}

// startConsole starts the program, which ends with the story, and returns the URL that it prints.
func (s *story) startConsole(flags ...string) string {
	s.Helper()
	args := append([]string{"toban", "console", "--open=false", "--namespace", string(s.Namespace)}, flags...)
	program := exec.CommandContext(s.ctx, "kubectl", args...)
	program.Stderr = os.Stderr
	out, err := program.StdoutPipe()
	must(s.T, err)
	must(s.T, program.Start())
	s.Cleanup(func() {
		must(s.T, program.Process.Signal(os.Interrupt))
		if err := program.Wait(); err != nil {
			s.Errorf("the console ended with %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must(s.T, err)
	return strings.TrimSpace(line)
}

// tell says what was in the page, where the story has failed.
func (p *browser) tell() {
	if !p.Failed() {
		return
	}
	content, err := evaluate[string](p, "document.body.innerHTML")
	p.Logf("the page (%v)\n%s", err, content)
}

func (p *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	must(p.T, chromedp.Do(ctx, steps...))
}

// evaluate is the value of an expression in the page. A page that is at rest answers at once.
func evaluate[T any](p *browser, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression))
}

// sees waits until something is there. It asks the page itself: what chromedp knows of a page it learns from events.
func (p *browser) sees(selector string) {
	p.Helper()
	p.until(func(context.Context) error {
		there, err := evaluate[bool](p, fmt.Sprintf("!!document.querySelector(%q)?.checkVisibility()", selector))
		if err != nil || there {
			return err
		}
		rows, err := evaluate[string](p, "[...document.querySelectorAll('#rows tr')].map(r => r.outerHTML).join(' ')")
		return errors.Join(fmt.Errorf("there is no %s; the fleet is %q", selector, rows), err)
	})
}

// press presses keys, each of which may be a text.
func (p *browser) press(keys ...string) {
	p.Helper()
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
}

// click clicks what is there by the mouse.
func (p *browser) click(selector string) {
	p.Helper()
	p.clickSlowly(selector, func() {})
}

// clickSlowly presses the mouse's button, does something, and releases it: that is a click still. What has moved from
// under the mouse before it was pressed is clicked again, as a person would.
func (p *browser) clickSlowly(selector string, meanwhile func()) {
	p.Helper()
	p.sees(selector)
	p.until(func(context.Context) error {
		x, y := p.middle(selector)
		p.do(chromedp.MouseEvent(chromedp.MousePressed, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
		hit, err := evaluate[bool](p, fmt.Sprintf("!!document.querySelector(%q)?.matches(':active')", selector))
		if hit {
			meanwhile()
		}
		p.do(chromedp.MouseEvent(chromedp.MouseReleased, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
		if err == nil && !hit {
			err = fmt.Errorf("%s is not where it was", selector)
		}
		return err
	})
}

// middle is where the middle of something is, when it has been brought into sight.
func (p *browser) middle(selector string) (x, y float64) {
	p.Helper()
	p.does(fmt.Sprintf("document.querySelector(%q).scrollIntoView({block: 'center', behavior: 'instant'})", selector))
	const middle = `(({x, y, width, height}) => [x + width / 2, y + height / 2])(%s.getBoundingClientRect())`
	at, err := evaluate[[2]float64](p, fmt.Sprintf(middle, fmt.Sprintf("document.querySelector(%q)", selector)))
	must(p.T, err)
	return at[0], at[1]
}

// does has the page do something.
func (p *browser) does(script string) {
	p.Helper()
	_, err := evaluate[any](p, script)
	must(p.T, err)
}

// value is that of an expression in the page.
func (p *browser) value(expression string) string {
	p.Helper()
	text, err := evaluate[string](p, expression)
	must(p.T, err)
	return text
}

func (p *browser) says(expression, want string) bool {
	p.Helper()
	return strings.Contains(p.value(expression), want)
}

// untilSays waits until a text of the page has some words.
func (p *browser) untilSays(selector, want string) string {
	p.Helper()
	text := ""
	p.until(func(context.Context) error {
		expression := fmt.Sprintf("document.querySelector(%q)?.textContent ?? ''", selector)
		if text = p.value(expression); !strings.Contains(text, want) {
			return fmt.Errorf("%s says %q, want %q", selector, text, want)
		}
		return nil
	})
	return text
}

// takesAMoment picks one by the keyboard. The command has it, and the cluster would take the manifest.
func (p *browser) takesAMoment() {
	p.Helper()
	p.sees(".window.on") // the first backup has ended
	p.does("document.querySelector('.slider').focus()")
	p.press(kb.Home, kb.ArrowRight)
	p.untilSays("#ways .copy code", "kubectl toban restore shop --into shop-restored --to 20")
	p.click("#ways summary")
	manifest := p.untilSays("#ways .copy pre", "restoreFrom:")
	if _, err := p.KubectlWith(p.story.ctx, manifest, "apply", "--dry-run=server", "-f", "-"); err != nil {
		p.Errorf("the cluster does not take the manifest: %v\n%s", err, manifest)
	}
	p.click("[data-key=way-table]")
	p.untilSays("#ways .copy code", "--table TABLE")
	p.click("[data-key=way-beside]")
}

// takesABackup asks for one, which takes its name. The page has news between the press and the release of the button,
// and the browser gives its first question up, as it does when an interface of the machine comes or goes.
func (p *browser) takesABackup() {
	p.Helper()
	p.does(`{
		const real = fetch;
		window.fetch = () => { window.fetch = real; return Promise.reject(new TypeError('Failed to fetch')); };
	}`)
	p.clickSlowly("[data-key=do-backup]", func() {
		p.run("delete", "pod", p.value("document.querySelector('.node.follower').dataset.node"))
		p.ready("shop")
	})
	p.untilSays("dialog .copy code", "kubectl toban backup shop --namespace "+string(p.Namespace))
	p.press("shop", kb.Enter)
	p.untilSays("dialog", "asked for")
	p.until(func(ctx context.Context) error {
		out, err := p.Kubectl(ctx, "get", "databasebackups", "-o", "name")
		if err == nil && strings.Count(out, "\n") < 2 {
			err = errors.New("there is no second DatabaseBackup")
		}
		return err
	})
	p.sees("body:not(:has(dialog))")
	p.sees(".backups tbody tr:nth-child(2)")
}

// changesItsLooks switches the language and the light.
func (p *browser) changesItsLooks() {
	p.Helper()
	p.click("#language")
	p.untilSays("#h-backups", "バックアップ")
	if !p.says("document.documentElement.lang", "ja") {
		p.Error("the page does not say that it is in Japanese")
	}
	p.click("#language")
	p.untilSays("#h-backups", "Backups")
	const background = "getComputedStyle(document.body).backgroundColor"
	lit := p.value(background)
	p.do(light("dark"))
	dark := p.value(background)
	p.click("#theme") // from that of the machine to light
	if again := p.value(background); lit == dark || again != lit {
		p.Errorf("the background is %s in the light, %s in the dark, and %s when light is chosen", lit, dark, again)
	}
}

// light is what the machine prefers: light or dark.
func light(scheme string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, _ *chromedp.Target) (none chromedp.Void, err error) {
		_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return none, err
	}
}

// picture writes what the browser shows for docs/console.md, where TOBAN_CONSOLE_PICTURES names a folder.
func (p *browser) picture(name string, height int64) {
	p.Helper()
	folder := os.Getenv("TOBAN_CONSOLE_PICTURES")
	if folder == "" {
		return
	}
	p.do(chromedp.EmulateViewport(1240, height))
	p.does("scrollTo(0, 0)")
	var shot page.CaptureScreenshotResult
	p.do(func(ctx context.Context, _ *chromedp.Target) (none chromedp.Void, err error) {
		shot, err = chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
			Format: page.CaptureScreenshotFormatWebp, Quality: new(int64(90))})
		return none, err
	})
	must(p.T, os.WriteFile(filepath.Join(folder, "console-"+name+".webp"), shot.Data, 0o644))
}
