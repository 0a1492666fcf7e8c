# expect: none
import surefoot as sf
class A:
    @sf.step(ignore=("self",))
    def f(self, n: int) -> int:
        self.n = n
        return n
