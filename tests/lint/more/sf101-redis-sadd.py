# expect: SF101
def one(r, mailer, user):
    r.sadd("sent", user.id)
    mailer.send(user.mail, "hi")
