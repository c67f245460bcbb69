import { budget } from '../../index';
export = budget;
