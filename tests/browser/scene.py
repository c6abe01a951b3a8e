"""What the rows of test_page.py share: the list of them, the browser, and what it looks at."""
import kubernetes
import made
import world
from webdriver import Browser, wait_for

FINISHED = 1000
EVIL = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
rows = []


def row(name, allows=None):
    """allows: what the console may complain of meanwhile, a regular expression."""
    def keep(function):
        rows.append((name, allows, function))
        return function
    return keep


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


class Scene:
    """The browser, and what it looks at."""

    def __init__(self, folder, images):
        self.folder, self.cluster = folder, kubernetes.Cluster()
        self.images, self.agent = images, None
        self.train()
        self.operator = world.Operator(folder, self.cluster)
        for job in [*world.finished_jobs(FINISHED), world.job("live", port=self.agent.port, gpus=4),
                    world.job("stuck", annotations={"pods": f"ImagePullBackOff: {EVIL}"})]:
            self.cluster.put(kubernetes.JOBS, job, "ADDED")
        self.operator.start()
        self.browser = Browser(folder)
        self.browser.size(1280, 800)

    def train(self):
        self.agent = world.Agent(self.folder, "mnist", "--preset=mnist", "--rdzv_id=50% of mnist", "--nproc_per_node=2", f"--data.root={self.images}", "--eval_size=64",
                                 "--batch_size=8", "--train_size=4096", "--epochs=1000", "--save_steps=8")

    def close(self):
        self.browser.__exit__()
        self.operator.close()
        self.agent.close()
        self.cluster.close()

    # ---- where the person goes
    def jobs(self):
        """All jobs, nothing filtered."""
        self.browser.open("about:blank")
        self.browser.open(self.operator.url)
        self.browser.find("table", "Jobs")
        self.listed(len(self.cluster.objects[kubernetes.JOBS]))

    def job(self, key):
        self.browser.open(f"{self.operator.url}#/{key}")
        self.browser.find("heading", f"~{key.partition('/')[2]}")

    def made(self):
        """A job of the test's own, of 20 points."""
        self.jobs()
        one = made.Made(self.browser)
        one.tell(20, "first")
        return one

    # ---- what is there
    def listed(self, count):
        """So many jobs are in the list, as a screen reader is told."""
        wait_for(f"{count} jobs", lambda: self.browser.script(
            "return document.querySelector('table.jobs')?.getAttribute('aria-rowcount')") == str(count + 1))

    def drawn(self):
        """The names of the jobs whose rows exist."""
        return self.browser.script("return [...document.querySelectorAll('tr.job a')].map(link => link.textContent)")

    def row_of(self, name):
        return self.browser.script("return [...document.querySelectorAll('tr.job')].find(row => row.querySelector('a').textContent === arguments[0])"
                                   "?.innerText", name)

    def says(self, text):
        wait_for(f"the page to say {text}", lambda: text in self.browser.text)

    def connection(self, text):
        wait_for(text, lambda: text in self.browser.all("status")[0].text)
