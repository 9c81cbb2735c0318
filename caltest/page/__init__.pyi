from ._leaderboard import write_leaderboard as write_leaderboard
from ._page import write_page as write_page
