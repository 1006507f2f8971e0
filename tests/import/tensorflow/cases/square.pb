
;
x0Placeholder*
dtype0*
shape:

SquareSquarex0*
T0
%
IdentityIdentitySquare*
T0